"""What the paper and we predict, as all tests of this wing read it."""

from pathlib import Path

from position_bias.verdicts.predictions import predictions

ROOT = Path(__file__).parents[3]
PREDICTED = predictions(ROOT / "published/predictions.csv", "structural")
