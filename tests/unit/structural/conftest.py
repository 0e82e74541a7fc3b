"""What all tests of this wing share: what the paper and we predict."""

from pathlib import Path

from position_bias.verdicts.registry import predictions

ROOT = Path(__file__).parents[3]
PREDICTED = predictions(ROOT / "published/predictions.csv", "structural")
