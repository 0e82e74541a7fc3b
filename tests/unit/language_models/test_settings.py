"""Which sources are directories; faults of models and texts one by one are listed in running/test_configuration.py."""

import pytest

from position_bias.language_models.settings import is_directory
from tests.configurations import EVERYTHING, refusals


@pytest.mark.parametrize("source", ["/models/bloom", "./bloom", "../bloom", ".", "bigscience/bloom", "gpt2"])
def test_a_directory_alone_starts_with_a_slash_or_a_dot(source):
    assert is_directory(source) == (source[0] in "/.")


def test_a_directory_with_the_form_of_a_hub_id_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refusals(EVERYTHING) == []
    (tmp_path / "someone/something").mkdir(parents=True)
    said = "source = 'someone/something' is no id of the hub; a directory starts with / or a dot"
    named = ("hub_datasets.web", "hub_models.large", "hub_models.rotary")
    assert refusals(EVERYTHING) == [f"{name}.{said}" for name in named]
