"""What all figures share: one style, looks of lines, intervals, and the scorecard's figure."""
