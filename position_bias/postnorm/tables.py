"""What is kept of the long trainings of `postnorm`."""

import pandas as pd


def evidence(tests: pd.DataFrame, runs: pd.DataFrame, scale: str) -> dict[str, pd.DataFrame]:
    """Tests by length of the trained networks, and what made them, for evidence/."""
    kept = tests.drop(columns=["device", "torch"]).round({"value": 6})
    return {"tests": kept.assign(scale=scale), "runs": runs.round({"value": 6}).assign(scale=scale)}
