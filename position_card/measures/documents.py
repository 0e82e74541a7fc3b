"""This module measures how probable an answer is by where the documents stand that hold it, or the options.

The documents that hold the answer, its gold ones, stand at each of several places among the others, which keep the
order of the file; or all documents are rotated, so that each stands at each place. Every prompt is made of tokens as a
whole, as a user would. What prompts begin with in common passes through the model once: as the trunk of a tree, all of
which passes in one row, or as a prefix of which the model keeps a cache, where it predicts the same so.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from position_card.core.runtime import InputError, quoted
from position_card.measures import passes
from position_card.probe import forward
from position_card.probe.precision import in_float32
from position_card.texts.tokens import encode

PLACES = 5  # of the gold documents, where all rotations are not asked for
TREE = 1024  # tokens of all prompts of a record, with answers, that pass in one row, at most

Tokens = tuple[int, ...]
Branch = tuple[Tokens, Cache | None]  # a prompt, and a cache of all its tokens but the last


class Prompt(NamedTuple):
    """The tokens of a prompt up to an answer, and those of the answer."""

    tokens: Tokens
    answer: Tokens


class Answer(NamedTuple):
    """What a model makes of a prompt."""

    log_probability: float  # of the whole answer, in nats
    likeliest: bool  # whether every token of it was the most probable one
    reply: Tokens  # what the model goes on with by itself, if that was asked for


def places(distractors: int, limit: int = PLACES) -> list[int]:
    """Return so many of the others, at most, that stand before the gold documents, at equal distances: none to all."""
    return np.linspace(0, distractors, min(limit, distractors + 1)).round().astype(int).tolist()


def orders(count: int, gold: Sequence[int], limit: int = PLACES) -> list[list[int]]:
    """Return orders of `count` documents with the gold ones side by side at each of `places`, at most so many."""
    distractors = [document for document in range(count) if document not in gold]
    return [[*distractors[:place], *gold, *distractors[place:]] for place in places(len(distractors), limit)]


def rotations(count: int, gold: Sequence[int]) -> list[list[int]]:
    """Return the rotations of the documents, in which the first of the gold ones stands at each place in turn.

    With several gold documents these begin side by side.
    """
    base = [*gold, *(document for document in range(count) if document not in gold)]
    return [[*base[count - place :], *base[: count - place]] for place in range(count)]


def option_orders(count: int) -> list[list[int]]:
    """Return so many orders of options, in which each option stands at each place once: option p - s at place p."""
    return [[(place - order) % count for place in range(count)] for order in range(count)]


def prompt_with_answer(tokenizer: Tokenizer, before: Sequence[int], text: str, answer: str) -> Prompt:
    """Return a prompt and its answer, as the tokenizer cuts the text with the answer behind it.

    A token belongs to the answer where it ends there. A blank stands between the two where the text does not end in
    one. The tokens `before`, with which a prompt of the model begins, are added where the text does not begin with
    them. Raises InputError where the answer has no token.
    """
    gap = "" if not text or text[-1].isspace() else " "
    whole = encode(tokenizer, text + gap + answer)
    ids = whole.ids if whole.ids[: len(before)] == list(before) else [*before, *whole.ids]
    count = sum(end > len(text) for _, end in whole.offsets)
    if not 0 < count < len(ids):
        raise InputError(f"the tokenizer makes no token of the answer {quoted(answer)}; give another one")
    return Prompt(tuple(ids[:-count]), tuple(ids[-count:]))


def tokens_read(prompts: Sequence[Prompt]) -> int:
    """Count the tokens that pass through a model which reads what prompts begin with in common once."""
    heads = sorted({tokens[:-1] for tokens, _ in prompts})
    pairs = zip([(), *heads], heads, strict=False)
    answers = sum(len(answer) for _, answer in set(prompts))
    return sum(len(head) - _common(before, head) for before, head in pairs) + answers


@in_float32
def shares_beginnings(model: PreTrainedModel, tokens: Tokens) -> bool:
    """Say whether a model predicts the same after tokens [n] where it has read the first half of them before.

    It is tried in float32, whatever the weights are: what bfloat16 rounds differs with how many tokens pass at once.
    """
    prompt = torch.tensor([tokens], device=forward.device(model))
    half = len(tokens) // 2

    def predict(from_prefix: bool) -> Tensor:
        if not from_prefix:
            return forward.next_token(model, prompt)[0]
        _, cache = forward.next_token(model, prompt[:, :half], keep=True)
        assert cache is not None
        return forward.next_token(model, prompt[:, half:], forward.repeat(cache, 1), keep=True)[0]

    return half > 0 and passes.reuses(partial(predict, False), partial(predict, True), "every prompt")


@in_float32
def reads_trees(model: PreTrainedModel, tokens: Tokens) -> bool:
    """Say whether a model predicts the same after tokens [n] where a row holds another end of their first half, too.

    It is tried as `shares_beginnings` is.
    """
    half = len(tokens) // 2
    tree = _Tree([(*tokens[:half], *tokens[half + 1 :]), tokens])
    prompt = torch.tensor([tokens], device=forward.device(model))
    return half > 0 and passes.reuses(
        lambda: forward.next_token(model, prompt)[0],
        lambda: tree.log_probabilities(model, tree.path(tokens)[-1:]).exp(),
        "every record",
        "is read prompt by prompt",
    )


class _Tree:
    """The tokens of several texts, in which what they begin with in common stands once."""

    def __init__(self, texts: Iterable[Tokens]) -> None:
        self.places: dict[tuple[int, int], int] = {}  # by the place of the token before, or -1, and the token
        for text in texts:
            self.path(text)

    def path(self, text: Tokens) -> list[int]:
        """Return the places of the tokens of a text, which is added where it is new."""
        places = [-1]
        for token in text:
            places.append(self.places.setdefault((places[-1], token), len(self.places)))
        return places[1:]

    def log_probabilities(self, model: PreTrainedModel, places: Sequence[int]) -> Tensor:
        """Return the log-probabilities of what follows the tokens at some places, float64 [p, V], in one pass."""
        parents, tokens = zip(*self.places, strict=True)
        row = torch.tensor(tokens, device=forward.device(model))
        return forward.log_probabilities_in_tree(model, row, parents, places)


class Reader:
    """A model that reads the prompts of one record after the other."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        prefix_cache: bool,
        tree: bool = False,
        reply_length: int = 0,
        ends: Sequence[int] = (),
    ) -> None:
        """Take a model, which goes on by itself for `reply_length` tokens after each prompt, or up to one of `ends`.

        The prompts of a record pass as a `tree` where nothing is to be replied.
        """
        self.model, self.prefix_cache, self.reply_length, self.ends = model, prefix_cache, reply_length, ends
        self.tree = tree and not reply_length

    def read(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """Return what the model makes of each prompt. All of them share their beginnings."""
        return self._read_in_a_row(prompts) if self.tree else self._read_apart(prompts)

    def _read_in_a_row(self, prompts: Sequence[Prompt]) -> list[Answer]:
        tree = _Tree([])
        paths = [tree.path((*tokens, *answer[:-1]))[-len(answer) :] for tokens, answer in prompts]
        places = sorted({place for path in paths for place in path})
        logarithms = tree.log_probabilities(self.model, places)
        index = {place: row for row, place in enumerate(places)}
        pairs = zip(paths, prompts, strict=True)
        return [
            Answer(*_score(logarithms[[index[place] for place in path]], prompt.answer), ()) for path, prompt in pairs
        ]

    def _read_apart(self, prompts: Sequence[Prompt]) -> list[Answer]:
        answers: dict[Tokens, set[Tokens]] = {}
        for prompt in prompts:
            answers.setdefault(prompt.tokens, set()).add(prompt.answer)
        walk = self._walk(sorted(answers), 0, None) if self.prefix_cache else ((tokens, None) for tokens in answers)
        results = {}
        for tokens, cache in walk:
            remainder = tokens if cache is None else tokens[-1:]
            reply = self._reply(remainder, _copy(cache)) if self.reply_length else ()
            for answer in sorted(answers[tokens]):
                row = self._row((*remainder, *answer[:-1]))
                logarithms = forward.log_probabilities(self.model, row, len(answer), _copy(cache))[0]
                results[tokens, answer] = Answer(*_score(logarithms, answer), reply)
        return [results[prompt] for prompt in prompts]

    def _walk(
        self, prompts: Sequence[Tokens], length: int, cache: Cache | None
    ) -> Iterator[tuple[Tokens, Cache | None]]:
        """Yield each of the sorted prompts with a cache of all its tokens but the last; `cache` has the first `length`.

        What is yielded stays as it is until the next prompt is asked for.
        """
        common = min(_common(prompts[0], prompts[-1]), min(map(len, prompts)) - 1)
        if common > length:
            cache = forward.next_token(self.model, self._row(prompts[0][length:common]), cache, keep=True)[1]
        groups: dict[int | None, list[Tokens]] = {}  # by the token that follows; None: a prompt has but one token more
        for prompt in prompts:
            groups.setdefault(prompt[common] if len(prompt) > common + 1 else None, []).append(prompt)
        *_, last = groups
        for token, group in groups.items():
            if token is None:
                yield from ((prompt, cache) for prompt in group)
            else:
                yield from self._walk(group, common, cache if token == last else _copy(cache))

    def _reply(self, prompt: Tokens, cache: Cache | None) -> Tokens:
        """Return the most probable tokens, one after the other, up to `reply_length` or to one of `ends`."""
        reply: Tokens = ()
        while len(reply) < self.reply_length:
            probabilities, cache = forward.next_token(self.model, self._row(prompt), cache, keep=self.prefix_cache)
            if (token := int(probabilities[0].argmax())) in self.ends:
                break
            reply = (*reply, token)
            prompt = (token,) if self.prefix_cache else (*prompt, token)
        return reply

    def _row(self, tokens: Tokens) -> Tensor:
        return torch.tensor([tokens], device=forward.device(self.model))


def _score(logarithms: Tensor, answer: Tokens) -> tuple[float, bool]:
    """Return the log-probability of an answer from those [c, V] after each token, and whether each was likeliest."""
    target = torch.tensor(answer, device=logarithms.device)
    likeliest = bool((logarithms.argmax(-1) == target).all())
    return float(logarithms.gather(1, target[:, None]).sum()), likeliest


def _copy(cache: Cache | None) -> Cache | None:
    return None if cache is None else forward.repeat(cache, 1)


def _common(a: Tokens, b: Tokens) -> int:
    """Count the tokens with which both begin."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((place for place, (first, second) in pairs if first != second), min(len(a), len(b)))
