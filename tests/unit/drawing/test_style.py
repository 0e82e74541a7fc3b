"""Every fault that `style.save` knows of is put into a good figure, and found; good figures pass."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from position_bias.drawing import legibility, style

FORMATS = ("pdf", "svg", "png")


pytestmark = pytest.mark.usefixtures("styled")


def good(columns=2, width=style.PAGE):
    """Panels with data of every kind, an inset, a colour bar, a legend, and ticks beyond the limits."""
    figure, row = plt.subplots(2, columns, figsize=(width, 3.4), squeeze=False, label="Squares")
    x = np.linspace(0, 1, 20)
    for axes in row[0]:
        axes.plot(x, x**2, label="a square")
        axes.fill_between(x, x**2, x, alpha=0.2)
        axes.axhline(0.5, color="0.5")
        axes.set(title="title", xlabel="across", ylabel="up", xlim=(0, 0.71))
    row[1][0].bar([0, 1, 2], [1, 2, 3])
    image = row[1][1].imshow(np.eye(9)) if columns > 1 else None
    if image is not None:
        figure.colorbar(image, ax=row[1][1])
    inset = row[0][0].inset_axes((0.15, 0.6, 0.25, 0.3))
    inset.scatter(x, x)
    inset.set(xticks=[], yticks=[])
    figure.legend(handles=row[0][0].lines[:1], loc="outside upper center")
    return figure, row


def saved(figure, folder, formats=FORMATS):
    paths = [folder / f"figure.{suffix}" for suffix in formats]
    style.save(figure, *paths)
    return paths


@pytest.mark.parametrize(("columns", "width"), [(2, style.PAGE), (1, style.COLUMN)])
def test_a_good_figure_is_written_in_all_formats(tmp_path, columns, width):
    pdf, svg, png = saved(good(columns, width)[0], tmp_path)
    assert [path.read_bytes()[:4] for path in (pdf, svg, png)] == [b"%PDF", b"<?xm", b"\x89PNG"]
    told = f"Squares. {2 * columns + 1 + (columns > 1)} panels, with the texts: "
    assert "<title>Squares</title>" in svg.read_text()
    assert f"<dc:description>{told}" in svg.read_text()
    assert Image.open(png).text["Description"].startswith(told)
    assert b"/Title (Squares)" in pdf.read_bytes()


def overlapping_axes(figure, row):
    figure.add_axes((0.3, 0.3, 0.3, 0.3)).plot([0, 1])
    return "overlaps panel 7"


def texts_that_meet(figure, row):
    row[0][1].text(0.5, 0.5, "one", transform=row[0][1].transAxes)
    row[0][1].text(0.51, 0.5, "other", transform=row[0][1].transAxes)
    return 'text "one" meets text "other"'


def tick_labels_that_meet(figure, row):
    row[0][1].set_xticks([0.5, 0.51], ["half", "more"])
    return 'text "half" meets text "more"'


def a_text_beyond_the_page(figure, row):
    figure.text(0.99, 0.5, "too far to the right")
    return 'text "too far to the right" leaves the page'


def a_text_on_another_panel(figure, row):
    row[0][0].text(0.5, 0.5, "astray", transform=row[0][1].transAxes, in_layout=False)
    return 'text "astray" lies on panel 3 ("title")'


def a_legend_over_a_panel(figure, row):
    figure.legend(handles=row[0][0].lines[:1], loc=(0.75, 0.8), labels=["over a panel"])
    return 'text "over a panel" lies on panel 3 ("title")'


def small_print(figure, row):
    row[0][0].set_xlabel("across", fontsize=5.5)
    return 'text "across" has 5.5 points, and 6 is the least'


def another_width(figure, row):
    figure.set_figwidth(5)
    return "the figure is 5 inches wide, and is printed at 3.3 or 6.8"


def higher_than_a_page(figure, row):
    figure.set_figheight(9.5)
    return "the figure is 9.5 inches high, and a page has 9"


def an_empty_panel(figure, row):
    for line in [*row[0][1].lines, *row[0][1].collections]:
        line.remove()
    return 'panel 3 ("title") shows no data'


def a_panel_with_nothing_but_a_reference(figure, row):
    row[1][0].clear()
    row[1][0].axhline(1)
    row[1][0].axvspan(0.2, 0.4)
    row[1][0].plot([], [], label="of the legend")
    return "panel 4 shows no data"


def data_out_of_sight(figure, row):
    row[0][1].set_ylim(5, 6)
    return 'panel 3 ("title") shows no data'


def data_that_are_missing(figure, row):
    row[1][1].clear()
    row[1][1].plot([0, 1], [np.nan, np.nan])
    row[1][1].bar([0, 1], [np.nan, np.nan])
    return "panel 5 shows no data"


def no_label(figure, row):
    figure.set_label("")
    return "the figure has no label"


@pytest.mark.parametrize(
    "spoil",
    [
        no_label,
        overlapping_axes,
        texts_that_meet,
        tick_labels_that_meet,
        a_text_beyond_the_page,
        a_text_on_another_panel,
        a_legend_over_a_panel,
        small_print,
        another_width,
        higher_than_a_page,
        an_empty_panel,
        a_panel_with_nothing_but_a_reference,
        data_out_of_sight,
        data_that_are_missing,
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_it_and_leaves_no_file(tmp_path, spoil):
    figure, row = good()
    expected = spoil(figure, row)
    with pytest.raises(style.IllegibleError, match=re.escape(expected)) as raised:
        saved(figure, tmp_path, ["svg"])
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "figure.svg") in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_formats_that_differ_are_an_error(tmp_path):
    """As a layout engine does that comes back after the first format."""
    figure, row = good()

    class Moving(plt.Line2D):
        drawn = 0

        def draw(self, renderer):
            super().draw(renderer)
            self.drawn += 1
            if self.drawn == 5:  # twice for the layout, twice for the first format
                row[0][0].set_position((0.1, 0.7, 0.2, 0.2))

    row[1][0].add_line(Moving([0, 1], [0, 1]))
    with pytest.raises(style.IllegibleError, match=r'unlike in .pdf, panel 1 \("title"\) stands \d+ points away'):
        saved(figure, tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".pdf"]


def test_panels_placed_by_hand_stay_there_in_all_formats(tmp_path):
    figure = plt.figure(figsize=(style.PAGE, 2), layout="none", label="Lines")
    for left in (0.1, 0.6):
        figure.add_axes((left, 0.25, 0.3, 0.6)).plot([0, 1])
    saved(figure, tmp_path)
    assert [axes.get_position().x0 for axes in figure.axes] == pytest.approx([0.1, 0.6])


def test_files_do_not_depend_on_the_last_digits_of_the_layout(tmp_path):
    """The solver of the layout adds in another order in every run."""
    for run in (0, 1):
        figure, _ = good()
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position([part * (1 + run * 1e-13) for part in axes.get_position(original=True).bounds])
        style.save(figure, *(tmp_path / f"{run}.{suffix}" for suffix in FORMATS))
    for suffix in FORMATS:
        assert (tmp_path / f"0.{suffix}").read_bytes() == (tmp_path / f"1.{suffix}").read_bytes()


def test_a_long_list_of_faults_is_cut(tmp_path):
    figure, row = good()
    for place in np.linspace(0.1, 0.15, 12):
        row[0][1].text(place, 0.5, "again and again", transform=row[0][1].transAxes)
    with pytest.raises(style.IllegibleError, match=r" and \d+ more; shorten the names"):
        saved(figure, tmp_path, ["svg"])


def test_ticks_beyond_the_limits_and_hidden_parts_are_not_judged():
    figure, row = good()
    row[0][1].text(0.5, 0.5, "hidden", transform=row[0][1].transAxes).set_visible(False)
    row[0][1].set_xticks([0, 0.4, 0.9], ["none", "some", "beyond"])
    row[0][1].set_xlim(0, 0.71)
    hidden = figure.add_axes((0.3, 0.3, 0.3, 0.3))
    hidden.set_visible(False)
    figure.draw_without_rendering()
    sight = legibility.seen(figure, figure.canvas.get_renderer())
    words = [text.words for text in sight.texts]
    assert {"none", "some"} <= set(words)
    assert not {"hidden", "beyond"} & set(words)
    assert hidden not in [panel.artist for panel in sight.panels]
    assert legibility.faults(sight) == []
