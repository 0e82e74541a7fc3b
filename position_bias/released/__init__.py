"""The five big models of Herasimchyk et al. 2026, through the numbers that its authors released: no model is run."""
