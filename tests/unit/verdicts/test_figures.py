import re
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from position_bias.verdicts import figures
from position_bias.verdicts.registry import KINDS, WHOSE
from position_bias.verdicts.rule import UNTESTABLE
from tests.drawn import assert_legible, assert_saved

VERDICTS = list(figures.COLOURS)

pytestmark = pytest.mark.usefixtures("styled")


def claims_of(paper, kind, verdict, number, whose="paper", doubted=False):
    return [{"paper": paper, "kind": kind, "verdict": verdict, "whose": whose, "doubted": doubted}] * number


def table(*groups):
    """Claims in groups, of which every other one is judged at its own scale, if it is at all."""
    rows = pd.DataFrame([claim for group in groups for claim in claims_of(*group)])
    return rows.assign(settled=(rows.index % 2 == 0) & (rows["verdict"] != UNTESTABLE))


def bars(figure):
    """Name of a line -> the colours and lengths of its parts, from the left; a heading has none."""
    (axes,) = figure.axes
    found = {}
    for place, name in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True):
        parts = [part for part in axes.patches if part.get_y() + part.get_height() / 2 == pytest.approx(place)]
        written = [text.get_text() for text in axes.texts if text.get_position()[1] == pytest.approx(place)]
        assert [f"{part.get_width():.0f}" for part in parts] == written
        ends = np.cumsum([0, *(part.get_width() for part in parts)])
        assert [part.get_x() for part in parts] == list(ends[:-1])
        found[name.get_text()] = [(to_rgb(part.get_facecolor()), part.get_width()) for part in parts]
        assert (name.get_fontweight() == "bold") == (not parts)
    return found


def parts(**counts):
    return [(to_rgb(figures.COLOURS[word.replace("_", " ")]), number) for word, number in counts.items()]


def test_each_kind_of_claim_has_a_bar_whose_parts_count_verdicts():
    figure = figures.counts(
        table(
            ("structural", "network", "undecided", 12),
            ("structural", "theory", "holds", 3),
            ("structural", "network", "fails", 2),
            ("structural", "network", "holds", 1),
            ("mine", "errata", "erratum", 2, WHOSE[1]),
            ("mine", "errata", "no effect", 1, WHOSE[1]),
            ("structural", "theory", "fails", 5, "paper", True),
        )
    )
    assert bars(figure) == {
        "Herasimchyk et al. 2026": [],
        "theory: 3": parts(holds=3),
        "networks: 15": parts(holds=1, fails=2, undecided=12),
        "mine, from secondary sources": [],
        "proofs and released numbers: 3": parts(erratum=2, no_effect=1),
    }
    assert re.findall(r"\d+", figure.get_label()) == ["21", "2", "4", "0", "2", "12"]
    assert_legible(figure)


def test_the_legend_names_every_verdict_and_counts_the_settled(tmp_path):
    claims = table(*(("emergence", kind, verdict, 4) for kind in KINDS for verdict in VERDICTS))
    figure = figures.counts(claims)
    settled = claims["settled"].sum()
    told = re.findall(r"\d+", figure.legends[1].get_title().get_text())
    assert told == [str(len(claims)), str(settled)]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(figures.VERDICT_HEADINGS.values())
    assert_saved(figure, tmp_path)


def test_verdicts_differ_in_print_without_colours():
    lightness = [np.dot(mpl.colors.to_rgb(colour), (0.299, 0.587, 0.114)) for colour in figures.COLOURS.values()]
    assert all(lighter - darker > 0.1 for darker, lighter in pairwise(lightness))
