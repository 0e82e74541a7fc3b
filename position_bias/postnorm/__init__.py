"""Zsamboki et al. 2025: attention that disperses with length, and normalisation that sharpens it again."""
