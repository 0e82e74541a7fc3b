"""Herasimchyk et al. 2026: position bias of language models, predicted by residual-aware attention rollout."""
