"""Claims of the papers, the verdicts that measurements pass on them, and the scorecard of all."""
