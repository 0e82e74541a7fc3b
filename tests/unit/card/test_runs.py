from pathlib import Path

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
    assert found["mine"].title == "mine on standard-library"


def test_an_untrained_copy_shares_the_record_of_its_model():
    found = runs.cards({**CONFIG, "model": "large", "card": {"untrained": 1}})
    assert {card.record for card in found.values()} == {"results/card/large/model.json"}
    assert [card.model.untrained for card in found.values()] == [None, 0]


def test_a_text_is_a_data_set_or_made_into_one():
    assert runs.text(CONFIG)[1:] == (
        "results/corpus/standard-library/test.parquet",
        "results/corpus/standard-library.json",
        [],
    )
    made = runs.text({**CONFIG, "text": "./a.txt"})
    assert made[1:3] == ("results/texts/a-txt/test.parquet", "results/texts/a-txt.json")
    assert [file[:2] for file in made.files] == [("a.txt", 4)]


def test_memory_is_what_is_said_or_what_the_weights_suggest():
    assert runs.megabytes(CONFIG) == 3003
    assert runs.megabytes({**CONFIG, "card": {"untrained": 0, "memory": 8}}) == 8000


def test_every_figure_and_page_is_made_and_named_at_the_end_that_of_several_models_first():
    made, together = runs.made(CONFIG), "bloom-beside-large-beside-mine"
    for name in (together, "bloom", "large", "mine"):
        assert {f"figures/card/{name}.pdf", f"results/card/{name}/card.md"} <= set(made)
        assert (f"results/card/{name}/layers.csv" in made) == (name != together)
    first, *others = runs.where_to_look(CONFIG, Path("/results"))
    assert first == f"Read /results/results/card/{together}/card.md; the figure is /results/figures/card/{together}.png"
    assert len(others) == 3
