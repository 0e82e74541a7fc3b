"""The gallery has every figure of the default run, with the verdicts of the scorecard that is kept."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from position_bias.verdicts.rule import WORDS
from tools import gallery
from tools.workflow import jobs

ROOT = Path(__file__).parents[2]
KEPT = pd.read_csv(ROOT / "docs/scorecard.csv")


@pytest.fixture(scope="module")
def planned():
    return jobs("all")


@pytest.mark.parametrize("paper", gallery.PAPERS)
def test_every_figure_of_the_default_run_has_its_place_and_a_small_image(paper, planned):
    page = (ROOT / f"docs/gallery/{paper}.md").read_text()
    figures = gallery.figures(paper, planned)
    built = re.findall(r"^Build it: `snakemake (\S+)`", page, re.MULTILINE)
    assert sorted(built, key=figures.index) == figures
    names = [Path(figure).stem for figure in built]
    assert re.findall(rf"^!\[.+\]\({paper}/(.+)\.png\)$", page, re.MULTILINE) == names
    images = {path.stem: path for path in (ROOT / f"docs/gallery/{paper}").iterdir()}
    assert set(images) == set(names)
    assert max(path.stat().st_size for path in images.values()) < 150_000


@pytest.mark.parametrize("paper", gallery.PAPERS)
def test_every_claim_that_a_figure_shows_has_its_verdict_there(paper):
    page = (ROOT / f"docs/gallery/{paper}.md").read_text()
    shown = KEPT[KEPT["shown"].str.contains(f"figures/{paper}/")]
    lines = {re.search(r"replication.md#([\w-]+)\)", line)[1]: line for line in page.splitlines() if line[:4] == "- **"}
    assert set(lines) == set(shown["claim"])
    for row in shown.to_dict("records"):
        assert f"Here: **{row['verdict']}**" in lines[row["claim"]]
        smaller = not row["settled"] and row["verdict"] != "not testable here"
        assert ("at a smaller scale" in lines[row["claim"]]) == smaller


@pytest.mark.parametrize("paper", gallery.PAPERS)
def test_every_figure_says_what_came_out_and_a_caption_is_said_once(paper):
    """Below the picture of a figure that stands alone, and above those of figures that share it."""
    _, *sections = (ROOT / f"docs/gallery/{paper}.md").read_text().split("\n## ")
    captions = []
    for section in sections:
        shared, *figures = section.split("\n### ")
        for figure in figures or [section]:
            assert figure.count("\n**What came out**") == figure.count("\nBuild it: ") == 1
        alone = re.search(r"\n\*\*What came out\*\*.*\n\n(.*)\n", shared)
        captions.append(alone[1] if alone else shared.split("\n")[2])
    assert len(captions) == len(set(captions))
    assert min(map(len, captions)) > 100


def test_what_came_out_is_told_by_verdict_and_scale():
    claims = pd.DataFrame(
        [("A wins", "holds", True), ("B wins", "holds", False), ("C wins", "fails", True), ("D wins", "holds", True)],
        columns=["title", "verdict", "settled"],
    )
    holds = "This holds: *A wins*; *D wins*. This holds at a smaller scale: *B wins*."
    assert gallery.came_out(claims) == f"**What came out**. {holds} This fails: *C wins*."
    assert set(gallery.OUTCOMES) >= set(KEPT["verdict"]) | set(WORDS)
    assert "no claim" in gallery.came_out(claims[:0])


def test_an_image_shrinks_to_the_same_bytes_and_keeps_its_picture(tmp_path):
    page = np.full((400, 1360, 3), 255, np.uint8)
    page[100:104], page[200:204] = (1, 115, 178), (2, 158, 115)  # two thin lines, blue and green
    page[300:304] = np.linspace(0, 255, 1360)[:, None]  # and many shades of grey
    Image.fromarray(page).save(tmp_path / "large.png")
    for name in ("one.png", "two.png"):
        gallery.shrink(tmp_path / "large.png", tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    with Image.open(tmp_path / "one.png") as small:
        assert small.size == (gallery.WIDTH, round(400 * gallery.WIDTH / 1360))
        drawn = np.asarray(small.convert("RGB"), int)
    exact = Image.fromarray(page).resize((gallery.WIDTH, drawn.shape[0]), Image.Resampling.LANCZOS)
    assert np.abs(drawn - np.asarray(exact, int)).max() < 25


def test_a_figure_that_is_not_built_ends_with_its_command(planned, tmp_path):
    with pytest.raises(
        gallery.InputError, match=r"fig1.png is not there; build it first: snakemake figures/structural"
    ):
        gallery.page("structural", tmp_path, planned, {}, KEPT)
