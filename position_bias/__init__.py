"""Position bias in transformers: measure it, predict it by attention rollout, and judge the predictions."""
