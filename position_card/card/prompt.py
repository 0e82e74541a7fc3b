"""What the spans of one prompt weigh is planned and measured here: for the command, and for a model in memory.

Tokens are those that the tokenizer makes of the whole prompt. They are cut where spans begin, and keep together when a
span is moved, so that every order has the same tokens.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedModel

from position_card.card import measuring
from position_card.card import texts as of_texts
from position_card.card.spans_page import Spans
from position_card.card.subject import Subject
from position_card.core import provenance
from position_card.core.runtime import InputError, seed
from position_card.measures import spans
from position_card.models import opening
from position_card.models.tokens import TokenIds, encoded

TEXTS = 4  # other texts that replace each span, one after the other; replacement is their mean


@dataclass(frozen=True)
class Plan:
    """What will be measured of a prompt, known before any weight is read."""

    subject: Subject
    texts: Sequence[str]  # of the spans
    tokens: Sequence[TokenIds]  # of the spans
    others: TokenIds  # that replace a span [TEXTS, tokens of the longest]
    target: str | int
    facts: Mapping[str, Any]

    def announce(self) -> None:
        """Say before the work what it takes."""
        subject, n = self.subject, self.facts["tokens"]
        measured = spans.distinct(len(self.texts))
        passes = 2 * len(measured) + TEXTS * sum(map(len, measured.values()))  # a backward pass counts as a forward one
        seconds = 2.0 * subject.size.parameters * n * passes
        seconds /= measuring.operations_per_second(subject.device, subject.precision)
        what = f"{len(self.texts)} spans of {n} tokens in {len(measured)} orders"
        subject.announce(what, subject.size.memory(n, n, subject.precision, recomputed=False), seconds)


def plan(
    subject: Subject,
    texts: Sequence[str],
    others: Iterable[str],
    target: str,
    drawn_by: int,
    *,
    prompt: str,
    sources: Mapping[str, str],
    parted: str,
) -> Plan:
    """Cut a prompt of these spans into tokens, and draw what replaces them from `others`.

    The page says besides what the `prompt` is called, the `sources` of prompt and text, and how spans were `parted`.
    Raises InputError where the prompt has fewer than three spans or more tokens than the model takes, or where the
    others have too few.
    """
    fast, before = subject.tokenizer, subject.before
    documents = list(of_texts.up_to(of_texts.CHARACTERS, others))
    spans.require_three(texts)
    tokens = cut(texts, fast)
    n, most = len(spans.joined(tokens, range(len(tokens)), before)), opening.longest(subject.config)
    if most is not None and n > most:
        raise InputError(f"the prompt has {n} tokens, but {subject.name} takes {most}; shorten it")
    differentiated, described = measuring.target_of(target, fast)
    orders = spans.distinct(len(texts))
    recut = sum(
        encoded(fast, "".join(texts[span] for span in order)).ids != list(spans.joined(tokens, order))
        for order in orders
    )
    said = {
        "name": subject.name,
        "prompt": prompt,
        "sources": {"model": subject.origin, **sources},
        "device": subject.device,
        "untrained": subject.untrained,
        "parted": parted,
        "precision": subject.precision,
        "weights": subject.quantisation,
        "sha256": hashlib.sha256("".join(texts).encode()).hexdigest(),
        "tokens": n,
        "before": [fast.id_to_token(token) for token in before],
        "orders": len(orders),
        "recut": recut,
        "texts": TEXTS,
        "read": {"documents": len(documents), "sha256": of_texts.digest(documents)},
        "target": described,
        "seed": drawn_by,
        "versions": provenance.versions(),
    }
    replacing = drawn(documents, fast, max(map(len, tokens)), seed(drawn_by, "card", "spans"))
    return Plan(subject, texts, tokens, replacing, differentiated, said)


def carry_out(plan: Plan, model: PreTrainedModel) -> Spans:
    """Measure an open `model` as planned. Raises InputError where token ids lie beyond its embeddings."""
    subject = plan.subject
    given = spans.joined(plan.tokens, range(len(plan.tokens)), subject.before)
    opening.require_known_tokens(np.append(given, plan.others), model, subject.name)
    table = spans.measure_spans(model, plan.tokens, plan.others, before=subject.before, target=plan.target)
    expected = spans.next_token(model, given)
    token = int(expected.argmax())
    said = subject.tokenizer.decode([token]) or subject.tokenizer.id_to_token(token) or f"token {token}"
    found = {"token": said, "probability": float(expected[token])}
    return Spans(plan.texts, table.assign(span=table["span"] + 1), {**plan.facts, "next": found})


def parted(separator: str | None) -> str:
    """What stands between the spans, in words."""
    return f"parted by {'blank lines' if separator is None else repr(separator)}"


def cut(texts: Sequence[str], tokenizer: Tokenizer) -> list[TokenIds]:
    """The tokens of the prompt that spans make together, by the span in which each begins: int64 [tokens of a span].

    One after the other they are the tokens of the prompt. Raises InputError where a span has none.
    """
    whole = encoded(tokenizer, "".join(texts))
    ends = np.cumsum([len(text) for text in texts])
    of = np.searchsorted(ends[:-1], [begin for begin, _ in whole.offsets], side="right")
    of, ids = np.maximum.accumulate(of), np.array(whole.ids, np.int64)
    found = [ids[of == span] for span in range(len(texts))]
    for span, tokens in enumerate(found, start=1):
        if not len(tokens):
            raise InputError(f"span {span} of the prompt has no token of its own; name another separator")
    return found


def drawn(documents: Sequence[str], tokenizer: Tokenizer, length: int, drawn_by: int) -> TokenIds:
    """TEXTS times so many tokens of documents in an order drawn by a seed, one after the other: int64 [TEXTS, length].

    Raises InputError where the documents have fewer.
    """
    order = np.random.default_rng(drawn_by).permutation(len(documents))
    stream = chain.from_iterable(encoded(tokenizer, documents[place]).ids for place in order)
    found = list(islice(stream, TEXTS * length))
    if len(found) < TEXTS * length:
        raise InputError(
            f"the text has {len(found)} tokens, but replacing the longest span by {TEXTS} texts takes "
            f"{TEXTS * length}; give more text"
        )
    return np.array(found, np.int64).reshape(TEXTS, length)
