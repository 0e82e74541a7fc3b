"""Figures: one module a paper, one function a figure, one style for all."""
