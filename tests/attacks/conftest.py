"""Every case of the attacks has 10 seconds and 2 GB: beyond, it fails. What is marked `all` may take longer.

On a machine that computes for others, too, the seconds are as many times more as its load is above its cores.
"""

import os
import resource
import signal
from contextlib import contextmanager

import pytest

SECONDS, MORE = 10, 2 * 10**9


@contextmanager
def limits(seconds, more):
    """Raise TimeoutError after so many seconds, and MemoryError where the process takes so many more bytes.

    Processes that are started within have the same limit of memory.
    """

    def end(*_):
        raise TimeoutError(f"it took more than {seconds:.1f} seconds")

    with open("/proc/self/statm") as told:
        taken = int(told.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, end)
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, before[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGALRM, handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if item.get_closest_marker("all"):
        return (yield)
    with limits(SECONDS * max(1, os.getloadavg()[0] / os.cpu_count()), MORE):
        return (yield)
