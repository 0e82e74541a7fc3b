"""The limits of all cases of this folder are there, and end what goes beyond them."""

import os
import resource
import signal
import time

import pytest

from tests.attacks.conftest import MORE, SECONDS, limits


def test_every_case_has_its_limits():
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= SECONDS * max(1, os.getloadavg()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    assert soft != hard
    with pytest.raises(MemoryError):
        bytearray(MORE + 10**9)


def test_what_hangs_or_takes_all_memory_fails():
    with pytest.raises(TimeoutError, match=r"more than 0\.1 seconds"), limits(0.1, MORE):
        time.sleep(5)
    with pytest.raises(MemoryError), limits(SECONDS, 10**8):
        bytearray(2 * 10**8)
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
