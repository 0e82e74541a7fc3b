"""The card: what is measured for it, its statistics, its page and figure, and the command."""
