"""`python -m position_card` is the command position-card."""

import sys

from position_card.card import command

sys.exit(command.main())
