"""The figure of how influence adds up. Its title is what the verdicts found."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from position_bias.drawing import rollouts
from position_bias.drawing.looks import DIRECTIONS, legend
from position_bias.drawing.panels import panels
from position_bias.drawing.rollouts import SHARE
from position_bias.rollout import measurement
from position_bias.rollout.directions import NULL, distances, profiles
from position_bias.running.artifacts import TensorFile
from position_bias.structural.checks_directions import DECIDING, PREFIX, checks
from position_bias.structural.checks_pretrained import on_text
from position_bias.verdicts.predictions import predictions
from position_bias.verdicts.rule import HOLDS, UNTESTABLE

WEIGHTS = {"hub": "trained", "copy0": "random weights, own scale", "usual0": "random weights, .02"}
JUDGED = {
    f"{PREFIX}total variation": "half of other prompts",
    f"{PREFIX}correlation": "same",
}  # of signs, and less what


def directions(measured: list[TensorFile], evidence: list[pd.DataFrame], predicted: Path, level: float) -> Figure:
    """Influence as measured, with random signs and with one direction, by model and kind of weights.

    Curves are means over prompts, of which each sums to 1. `measured` are the files of models and of their copies,
    `evidence` the tables that `checks_directions` judges by what is `predicted`. Above each panel stands the total
    variation of a prompt that a change leaves.
    """
    title = finding(checks(evidence, predictions(predicted, "structural"), level))
    models = {model: model for model in (file.labels["model"] for file in measured)}
    x, y = "token position", f"{SHARE}, log scale"
    figure, grid = panels(title, 0.3 + 2.1 * len(models), WEIGHTS, models, x=x, y=y, sharex=True, sharey=True)
    lowest = 1.0
    for file in measured:
        found, labels = measurement.read(file.path), file.labels
        axes = grid[labels["model"], labels["checkpoint"]]
        known, apart = profiles(found), distances(found)
        rollouts.uniform(axes, found.n)
        for place, (name, look) in enumerate(DIRECTIONS.items(), 1):
            curve = pd.DataFrame({"position": range(found.n), "value": known[name].mean(0)})
            rollouts.line(axes, curve, look.colour, look.width, look.line)
            rollouts.few_marks(axes, curve, look, place)
            lowest = min(lowest, float(curve["value"].min()))
        told = [
            f"{word} {apart[name].mean():.2f}" for word, name in (("signs", "signs"), ("one", "same"), ("null", NULL))
        ]
        axes.set_title(f"{WEIGHTS[labels['checkpoint']]}, {found.prompts} prompts\n{', '.join(told)}")
    rollouts.logarithmic(axes, lowest / 1.5)
    entries = [*(look.entry() for look in DIRECTIONS.values()), rollouts.uniform_entry()]
    settings = "above the panels: total variation of a prompt; null: the mean of other prompts"
    legend(figure, entries, settings=settings)
    return figure


def finding(judged: pd.DataFrame) -> str:
    """In how many of the pretrained decoders that evidence/ has influence adds in squares, by their own verdicts.

    A decoder that was seen before the claim was written counts as such.
    """
    decides = on_text(judged, *DECIDING)
    pairs = [
        (decides["statistic"] == statistic) & (decides["network"] == "signs") & (decides["other"] == other)
        for statistic, other in JUDGED.items()
    ]
    rows = decides[(pairs[0] | pairs[1]) & (decides["verdict"] != UNTESTABLE)]
    squares = rows["verdict"].eq(HOLDS).groupby(rows["model"]).all()
    if squares.empty:
        return "What random signs, and one direction for all gradients, leave of a token's influence"
    seen = rows.loc[rows["seen_before"] > 0, "model"].nunique()
    return (
        f"Influence adds up in squares in {squares.sum()} of {len(squares)} pretrained decoders ({seen} seen before "
        "the claim): random signs of gradients leave it nearly as it is, one direction for all does not"
    )
