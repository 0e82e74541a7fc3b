"""Attention rollout: the last row of products of transition matrices, and its variants compared."""
