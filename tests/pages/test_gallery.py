"""The gallery has every figure of the default run, with the verdicts of the scorecard that is kept."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from position_bias.verdicts.rule import WORDS
from tests.refusals import refused
from tools import gallery
from tools.workflow import jobs

ROOT = Path(__file__).parents[2]
KEPT = pd.read_csv(ROOT / "docs/scorecard.csv")


@pytest.fixture(scope="module")
def planned():
    return jobs("all")


@pytest.mark.parametrize("paper", gallery.PAPERS)
def test_every_figure_has_a_small_image_and_what_came_out(paper, planned):
    page = (ROOT / f"docs/gallery/{paper}.md").read_text()
    built = re.findall(r"^Build it: `snakemake (\S+)`", page, re.MULTILINE)
    assert sorted(built) == sorted(gallery.figures(paper, planned))
    assert page.count("\n**What came out**") == len(built)
    names = [Path(figure).stem for figure in built]
    assert re.findall(rf"^!\[.+\]\({paper}/(.+)\.png\)$", page, re.MULTILINE) == names
    images = list((ROOT / f"docs/gallery/{paper}").iterdir())
    assert sorted(image.stem for image in images) == sorted(names)
    assert max(image.stat().st_size for image in images) < 150_000


@pytest.mark.parametrize("paper", gallery.PAPERS)
def test_every_claim_that_a_figure_shows_has_its_verdict(paper):
    page = (ROOT / f"docs/gallery/{paper}.md").read_text()
    shown = KEPT[KEPT["shown"].str.contains(f"figures/{paper}/")].set_index("claim")
    found = re.findall(r"^- \*\*.* Here: \*\*(.+?)\*\*(.*)\.\./replication\.md#(.+)\)", page, re.MULTILINE)
    assert {claim for *_, claim in found} == set(shown.index)
    for verdict, scale, claim in found:
        assert verdict == shown["verdict"][claim]
        smaller = not shown["settled"][claim] and verdict != "not testable here"
        assert ("at a smaller scale" in scale) == smaller


def test_what_came_out_is_told_by_verdict_and_scale():
    claims = pd.DataFrame(
        [("A wins", "holds", True), ("B wins", "holds", False), ("C wins", "fails", True), ("D wins", "holds", True)],
        columns=["title", "verdict", "settled"],
    )
    holds = "This holds: *A wins*; *D wins*. This holds at a smaller scale: *B wins*."
    assert gallery.came_out(claims) == f"**What came out**. {holds} This fails: *C wins*."
    assert set(gallery.OUTCOMES) >= set(KEPT["verdict"]) | set(WORDS)
    assert "no claim" in gallery.came_out(claims[:0])


def test_an_image_shrinks_to_the_same_bytes_and_keeps_colours(tmp_path):
    page = np.full((400, 1360, 3), 255, np.uint8)
    page[100:104], page[200:204] = (1, 115, 178), (2, 158, 115)  # two thin lines, blue and green
    page[300:304] = np.linspace(0, 255, 1360)[:, None]  # and many shades of grey
    Image.fromarray(page).save(tmp_path / "large.png")
    for name in ("one.png", "two.png"):
        gallery.shrink(tmp_path / "large.png", tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    with Image.open(tmp_path / "one.png") as small:
        drawn = np.asarray(small.convert("RGB"), int)
    size = gallery.WIDTH, round(400 * gallery.WIDTH / 1360)
    np.testing.assert_allclose(drawn, Image.fromarray(page).resize(size, Image.Resampling.LANCZOS), atol=25)


def test_a_figure_that_is_not_built_ends_with_its_command(planned, tmp_path):
    with refused("fig1.png", "snakemake figures/structural"):
        gallery.page("structural", tmp_path, planned, {}, KEPT)
