import pytest

from position_bias.card import runs

CONFIG = {
    "model": "bloom,large,./mine",
    "text": "standard-library",
    "card": {"untrained": 0, "memory": 0},
    "training": {"snapshots": [0], "steps": 300},
    "models": {"bloom": {"seeds": [3, 4]}},
    "hub_models": {"large": {"source": "someone/large", "revision": "0" * 40}},
    "datasets": {"standard-library": {}},
    "hub_datasets": {},
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/model.safetensors").write_bytes(b"0" * 10**6)
    (tmp_path / "a.txt").write_text("text")


def test_a_card_knows_where_its_model_comes_from_and_what_tells_its_files_apart():
    found = runs.cards(CONFIG)
    assert [card.source for card in found.values()] == [
        "./results/models/bloom/seed3/step300", "someone/large", "./mine"
    ]  # fmt: skip
    assert found["bloom"].trained == ["results/models/bloom/seed3/step300"]
    assert (found["large"].trained, found["large"].revision) == ([], "0" * 40)
    assert [file[:2] for file in found["mine"].files] == [("mine/model.safetensors", 10**6)]
    assert found["bloom"].files == found["large"].files == []


def test_an_untrained_copy_shares_what_was_fetched_for_its_model_and_the_text_is_in_every_name():
    asked = {**CONFIG, "model": "large", "text": "./a.txt", "card": {"untrained": 1, "memory": 0}}
    found = runs.cards(asked)
    assert list(found) == ["large-on-a.txt", "large-untrained-0-on-a.txt"]
    assert {card.origin for card in found.values()} == {"large-on-a.txt"}
    assert [card.model.untrained for card in found.values()] == [None, 0]
    assert [file[:2] for file in found["large-on-a.txt"].files] == [("a.txt", 4)]
    assert list(runs.figures(asked)) == [*found, "large-beside-1-untrained-on-a.txt"]


def test_memory_is_what_is_said_or_what_the_weights_suggest():
    assert runs.megabytes(CONFIG) == 3003
    assert runs.megabytes({**CONFIG, "card": {"untrained": 0, "memory": 8}}) == 8000


def test_several_models_have_a_figure_each_and_one_together():
    together = "bloom-beside-large-beside-mine"
    assert runs.figures(CONFIG) == {"bloom": ["bloom"], "large": ["large"], "mine": ["mine"], together: [
        "bloom", "large", "mine"
    ]}  # fmt: skip
    assert runs.figures({**CONFIG, "model": None}) == {}
