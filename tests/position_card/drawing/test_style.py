"""Files of figures are alike in every run; and every fault of legibility is put into a good figure, and found."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from position_card.drawing import style
from position_card.drawing.looks import legend
from tests import legibility

FORMATS = ("pdf", "svg", "png")


pytestmark = pytest.mark.usefixtures("styled")


def good():
    """Panels with data of every kind, an inset, a colour bar, a legend, and ticks beyond the limits."""
    figure, row = plt.subplots(2, 2, figsize=(style.PAGE, 3), label="Squares")
    x = np.linspace(0, 1, 20)
    for axes in row[0]:
        axes.plot(x, x**2, label="a square")
        axes.fill_between(x, x**2, x, alpha=0.2)
        axes.axhline(0.5, color="0.5")
        axes.set(title="title", xlabel="across", ylabel="up", xlim=(0, 0.71))
    row[1][0].bar([0, 1, 2], [1, 2, 3])
    figure.colorbar(row[1][1].imshow(np.eye(9)), ax=row[1][1])
    inset = row[0][0].inset_axes((0.15, 0.6, 0.25, 0.3))
    inset.scatter(x, x)
    inset.set(xticks=[], yticks=[])
    legend(figure, row[0][0].lines[:1])
    return figure, row


def test_a_good_figure_is_written_in_all_formats(tmp_path):
    pdf, svg, png = paths = [tmp_path / f"figure.{suffix}" for suffix in FORMATS]
    assert legibility.faults_of_files(good()[0], *paths) == []
    assert [path.read_bytes()[:4] for path in (pdf, svg, png)] == [b"%PDF", b"<?xm", b"\x89PNG"]
    told = "Squares. 6 panels, with the texts: "
    assert "<title>Squares</title>" in svg.read_text()
    assert f"<dc:description>{told}" in svg.read_text()
    assert Image.open(png).text["Description"].startswith(told)
    assert b"/Title (Squares)" in pdf.read_bytes()


def spoil_texts(figure, row):
    """Texts that meet, lie on another panel, leave the page, and are small; what is said of each."""
    title = row[0][1]
    title.text(0.5, 0.5, "one", transform=title.transAxes)
    title.text(0.51, 0.5, "other", transform=title.transAxes)
    title.set_xticks([0.5, 0.51], ["half", "more"])
    figure.text(0.99, 0.5, "too far to the right")
    row[0][0].text(0.5, 0.9, "astray", transform=title.transAxes, in_layout=False)
    figure.legend(handles=row[0][0].lines[:1], loc=(0.75, 0.8), labels=["over a panel"])
    row[0][0].set_xlabel("across", fontsize=5.5)
    figure.set_label("")
    return [
        "the figure has no label",
        'text "one" meets text "other"',
        'text "half" meets text "more"',
        'text "too far to the right" leaves the page',
        'text "astray" lies on panel 3 ("title")',
        'text "over a panel" lies on panel 3 ("title")',
        'text "across" has 5.5 points, and 6 is the least',
    ]


def spoil_panels(figure, row):
    """Panels that overlap, have nothing but a reference, missing data, and data out of sight, on too large a page."""
    figure.add_axes((0.3, 0.3, 0.3, 0.3)).plot([0, 1])
    row[0][1].set_ylim(5, 6)
    for axes in row[1]:
        axes.clear()
    row[1][0].axhline(1)
    row[1][0].axvspan(0.2, 0.4)
    row[1][0].plot([], [], label="of the legend")
    row[1][1].plot([0, 1], [np.nan, np.nan])
    row[1][1].bar([0, 1], [np.nan, np.nan])
    figure.set_size_inches(5, 9.5)
    return [
        "overlaps panel 7",
        'panel 3 ("title") shows no data',
        "panel 4 shows no data",
        "panel 5 shows no data",
        "the figure is 5 inches wide, and is printed at 3.3 or 6.8",
        "the figure is 9.5 inches high, and a page has 9",
    ]


@pytest.mark.parametrize("spoil", [spoil_texts, spoil_panels])
def test_what_cannot_be_read_is_found(spoil):
    figure, row = good()
    assert legibility.faults(legibility.drawn(figure)) == []
    expected = spoil(figure, row)
    found = "; ".join(legibility.faults(legibility.drawn(figure)))
    assert [said for said in expected if said not in found] == []


def test_formats_that_differ_are_a_fault(tmp_path):
    """As a layout engine does that comes back after the first format."""
    figure, row = good()

    class Moving(plt.Line2D):
        drawn = 0

        def draw(self, renderer):
            super().draw(renderer)
            self.drawn += 1
            if self.drawn == 2:  # once for the first format
                row[0][0].set_position((0.1, 0.7, 0.2, 0.2))

    row[1][0].add_line(Moving([0, 1], [0, 1]))
    found = legibility.faults_of_files(figure, *(tmp_path / f"figure.{suffix}" for suffix in FORMATS))
    assert re.match(r'unlike in .pdf, panel 1 \("title"\) stands \d+ points away', found[0])


def test_files_do_not_depend_on_the_last_digits_of_the_layout(tmp_path):
    """The solver of the layout adds in another order in every run."""
    for run in (0, 1):
        figure, _ = good()
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position([part * (1 + run * 1e-13) for part in axes.get_position(original=True).bounds])
        style.save(figure, *(tmp_path / f"{run}.{suffix}" for suffix in FORMATS[:2]))
    for suffix in FORMATS[:2]:  # pixels are no finer
        assert (tmp_path / f"0.{suffix}").read_bytes() == (tmp_path / f"1.{suffix}").read_bytes()


def test_places_have_six_digits_and_those_by_hand_stay(tmp_path):
    """The layout gives parts all digits, of which the last vary."""
    figure = plt.figure(figsize=(style.PAGE, 2), layout="none", label="Lines")
    for left in (0.1, 0.6):
        figure.add_axes((left, 0.25, 0.3, 0.6)).plot([0, 1])
    style.save(figure, tmp_path / "figure.svg")
    assert [axes.get_position().x0 for axes in figure.axes] == pytest.approx([0.1, 0.6])
    figure = plt.figure(figsize=(style.PAGE, 2), label="Lines")
    for part in figure.subfigures(1, 2, width_ratios=[1, 1.7]):
        part.subplots().plot([0, 1])
    style.save(figure, tmp_path / "figure.svg")
    places = [part.bbox_relative.get_points() for part in figure.subfigs]
    np.testing.assert_array_equal(places, np.round(places, 6))


@pytest.fixture
def at(monkeypatch):
    """What draws for a page of another width, and forgets it after the test."""
    for name in ("PAGE", "COLUMN", "TYPE", "SMALLEST"):
        monkeypatch.setattr(style, name, getattr(style, name))
    monkeypatch.setattr(style, "_SETTINGS", dict(style._SETTINGS))
    return style.print_at


def test_a_usual_page_changes_no_byte(at, tmp_path):
    paths = [tmp_path / f"{run}.{suffix}" for run in (0, 1) for suffix in FORMATS]
    for some, width in ((paths[:3], 0), (paths[3:], None)):
        if width is None:
            at(None, False)
        with style.figure_style():
            style.save(good()[0], *some)
    assert [path.read_bytes() for path in paths[:3]] == [path.read_bytes() for path in paths[3:]]


def test_a_column_has_smaller_type_and_no_ground(at, tmp_path):
    at(3.3, True)
    with style.figure_style():
        figure, row = good()
        row[1][0].set_xticks([0, 1, 2], ["the first of three", "the second of three", "the third of three"])
        style.save(figure, tmp_path / "figure.png")
        sight = legibility.drawn(figure)
    assert min(text.size for text in sight.texts) == pytest.approx(5)
    assert [fault for fault in legibility.faults(sight) if "of three" in fault and "meets" in fault] == []
    with Image.open(tmp_path / "figure.png") as drawn:
        assert drawn.width / style._SETTINGS["savefig.dpi"] == pytest.approx(3.3, abs=0.15)
        assert drawn.getpixel((0, 0))[3] == 0
