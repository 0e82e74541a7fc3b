"""Wu et al. 2025: position bias of attention-only networks trained on a synthetic retrieval task."""
