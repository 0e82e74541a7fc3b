"""Figure 5 of Herasimchyk et al. 2026."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from position_bias.drawing.looks import DIVERGING, UNREAD, legend
from position_bias.drawing.style import COLUMN, PAGE
from position_bias.running.artifacts import TensorFile
from position_bias.structural.tables import training

SHOWN = 0.99  # share of the deviations that the colours of a model span
MODELS_ACROSS = 3

Content = NDArray[np.float32]


def fig5(measured: list[TensorFile]) -> Figure:
    """Figure 5: mean content logits of the first, middle and last layer (down) and head (across) of each model.

    Each file is of one training of a model. Each panel shows the deviation from its head's mean below the diagonal,
    the background that cancels in the softmax (Prop. 4.5), and says in its corner how far the diagonal lies off it on
    average; grey is that mean. If content were constant plus diagonal, panels would be grey but for one line. Rows
    are queries.
    """
    across = min(MODELS_ACROSS, len(measured))
    down = -(-len(measured) // across)
    panel = (PAGE / MODELS_ACROSS - 0.5) / 3
    width = COLUMN if across == 1 else PAGE
    label = "Mean content logits of the first, middle and last layer and head of each model"
    figure = plt.figure(figsize=(width, down * (3 * panel + 1.0)), label=label)
    parts = figure.subfigures(down, across, squeeze=False).flat
    for part, file in zip(parts, measured, strict=False):
        labels, content = file.labels, file.read("content")["content"]
        layers, heads = (sorted({0, (size - 1) // 2, size - 1}) for size in content.shape[:2])
        deviations = np.stack([[_deviation(content[layer, head]) for head in heads] for layer in layers])
        limit = float(np.nanquantile(np.abs(deviations), SHOWN)) or 1.0  # content may be constant
        rows = part.subplots(len(layers), len(heads), sharex=True, sharey=True, squeeze=False)
        for row, layer, of_layer in zip(rows, layers, deviations, strict=True):
            for axes, head, deviation in zip(row, heads, of_layer, strict=True):
                image = _panel(axes, deviation, limit)
                axes.set_title(f"head {head + 1}" if layer == layers[0] else "")
            row[0].set_ylabel(f"layer {layer + 1}\nquery", labelpad=1)
        for axes in rows[-1]:
            axes.set_xlabel("key", labelpad=-6)
        part.suptitle(f"{labels['model']}, {training(labels['checkpoint']).replace('seed', 'training seed ')}")
        bar = part.colorbar(image, ax=rows, location="bottom", extend="both", fraction=0.06, aspect=25)
        bar.set_label("logits above background")
        bar.outline.set_linewidth(0.4)
    legend(figure)
    return figure


def _deviation(logits: Content) -> NDArray[np.float64]:
    """Logits [n, n] less their mean below the diagonal; NaN above the diagonal."""
    n = len(logits)
    causal = logits.astype(np.float64)
    causal[np.triu_indices(n, 1)] = np.nan
    return causal - causal[np.tril_indices(n, -1)].mean()


def _panel(axes: Axes, deviation: NDArray[np.float64], limit: float) -> AxesImage:
    n = len(deviation)
    colours = mpl.colormaps[DIVERGING].with_extremes(bad=UNREAD)
    # "none" embeds n x n pixels in PDF and SVG, sharp at every size; rasterizing would embed what the screen shows.
    image = axes.imshow(deviation, cmap=colours, vmin=-limit, vmax=limit, interpolation="none")
    shift = np.diagonal(deviation).mean()
    axes.text(0.97, 0.98, f"${shift:+.2f}$", ha="right", va="top", transform=axes.transAxes)
    axes.set_xticks([0, n - 1], ["0", str(n - 1)])
    axes.set_yticks([0, n - 1], ["0", str(n - 1)])
    axes.tick_params(length=2)
    return image
