"""Claims of the papers, and the verdicts that measurements pass on them."""
