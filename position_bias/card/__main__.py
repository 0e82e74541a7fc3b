"""`python -m position_bias.card` is the command position-card."""

import sys

from position_bias.card import command

sys.exit(command.main())
