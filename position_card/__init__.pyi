from position_card.card.call import measure as measure
from position_card.card.call import spans as spans
from position_card.card.card import Card as Card

__all__ = ["Card", "measure", "spans"]
