from position_card.card.call import documents as documents
from position_card.card.call import measure as measure
from position_card.card.card import Card as Card
from position_card.card.card import load as load
from position_card.core.runtime import InputError as InputError

__all__ = ["Card", "InputError", "documents", "load", "measure"]
