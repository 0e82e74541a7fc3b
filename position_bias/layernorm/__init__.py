"""Kim et al. 2026: how LayerNorm makes causal decoders without positional encoding favour recent tokens."""
