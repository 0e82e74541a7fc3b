"""What all tests of this wing share: what the paper and we predict, and files that are not there."""

from pathlib import Path
from types import SimpleNamespace

from position_bias.verdicts.registry import predictions

ROOT = Path(__file__).parents[3]
PREDICTED = predictions(ROOT / "published/predictions.csv", "structural")


def file(labels, **tensors):
    """What reads as the file of a measurement with these tensors."""
    return SimpleNamespace(labels=labels, read=lambda *names: {name: tensors[name] for name in names})
