"""The target that influence is the gradient of: a function of the probabilities of the next token, or one token."""

from tokenizers import Tokenizer

from position_card.core.runtime import InputError
from position_card.texts.tokens import encode

TARGETS = {
    "p": "the probability of the most likely next token",
    "log-p": "the logarithm of the probability of the most likely next token",
    "contrast": "the logit of the most likely next token less that of the second",
}


def find_target(target: str, tokenizer: Tokenizer) -> tuple[str | int, str]:
    """Return the target that a user names, a key of TARGETS or the id of a token, and the same in words.

    A token is named as the tokenizer has it, or as it stands in a text. Raises InputError where it is no single token.
    """
    if target in TARGETS:
        return target, TARGETS[target]
    token = tokenizer.token_to_id(target)
    ids = [token] if token is not None else encode(tokenizer, target).ids
    if len(ids) != 1:
        raise InputError(f"target {target!r} is {len(ids)} tokens; name one, or {', '.join(TARGETS)}")
    return int(ids[0]), f"the probability that the next token is {target!r}"
