import time

import datasets
import huggingface_hub
import pytest

from position_bias.language_models import families, hub, tokens
from position_bias.runtime import InputError


@pytest.fixture
def unreachable(monkeypatch):
    """A hub that refuses connections, and a clock that forbids to wait for it."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    for settings in (huggingface_hub.constants, datasets.config):
        monkeypatch.setattr(settings, "HF_HUB_OFFLINE", False)

    def wait(seconds):
        raise AssertionError(f"waits for {seconds} s")

    monkeypatch.setattr(time, "sleep", wait)


def test_a_hub_data_set_without_network_is_one_line_at_once(unreachable):
    with pytest.raises(InputError, match=r"^hub data set 'someone/some-data', split 'train', cannot be read: [^\n]+$"):
        tokens.texts("someone/some-data", "train")


def test_a_hub_model_is_not_asked_for(unreachable):
    with pytest.raises(InputError, match=r"^model directory someone/some-model lacks config\.json; [^\n]+$"):
        families.open_model("someone/some-model")


def test_without_network_the_libraries_are_told_so_once(unreachable, caplog):
    hub.settle_offline()
    assert huggingface_hub.constants.HF_HUB_OFFLINE
    assert datasets.config.HF_HUB_OFFLINE
    hub.settle_offline()
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == ["http://127.0.0.1:9 does not answer"]
