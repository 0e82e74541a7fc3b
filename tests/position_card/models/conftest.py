import sys
import time

import huggingface_hub
import pytest


@pytest.fixture
def unreachable(monkeypatch):
    """A hub that refuses connections, and a clock that forbids to wait for it."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    libraries = [huggingface_hub.constants]
    if "datasets" in sys.modules:
        libraries.append(sys.modules["datasets"].config)
    for settings in libraries:
        monkeypatch.setattr(settings, "HF_HUB_OFFLINE", False)

    def wait(seconds):
        raise AssertionError(f"waits for {seconds} s")

    monkeypatch.setattr(time, "sleep", wait)
