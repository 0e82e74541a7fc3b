"""Words of formal languages by their definitions, and the state of an automaton after a word."""

import re
from functools import cache
from itertools import groupby


def tomita_word(number, word):
    """Whether a tuple of 0s and 1s is a word, by the definition in words or as a regular expression."""
    text = "".join(map(str, word))
    match number:
        case 1:
            return "0" not in text
        case 2:
            return re.fullmatch("(10)*", text) is not None
        case 3:
            odd = [symbol for symbol, run in groupby(text) if len(list(run)) % 2]
            return "0" not in odd[odd.index("1") :] if "1" in odd else True
        case 4:
            return "000" not in text
        case 5:
            return text.count("0") % 2 == 0 and text.count("1") % 2 == 0
        case 6:
            return (text.count("0") - text.count("1")) % 3 == 0
        case 7:
            return re.fullmatch("0*1*0*1*", text) is not None


def dyck_word(kinds, depth, word):
    stack = []
    for symbol in word:
        if symbol < kinds:
            stack.append(symbol)
            if len(stack) > depth:
                return False
        elif not stack or stack.pop() != symbol - kinds:
            return False
    return not stack


@cache
def is_word(name, word):
    kind, *numbers = name.split("-")
    return tomita_word(int(numbers[0]), word) if kind == "tomita" else dyck_word(*map(int, numbers), word)


def state_after(language, word):
    state = 0
    for symbol in word:
        state = language.transitions[state, symbol]
        if state < 0:
            return -1
    return state
