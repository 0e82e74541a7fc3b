"""This module plans and measures what the spans of one prompt weigh, for the command and for a model in memory.

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

from position_card.card.spans_page import Spans
from position_card.card.subject import Subject
from position_card.card.target import find_target
from position_card.card.texts import CHARACTERS, documents_digest, first_characters
from position_card.core import provenance
from position_card.core.runtime import InputError, seed
from position_card.measures import spans
from position_card.measures.cost import operations_per_second
from position_card.models import opening
from position_card.models.tokens import TokenIds, encoded, special_tokens, without_start

TEXTS = 4  # other texts that replace each span, one after the other; replacement is their mean


@dataclass(frozen=True)
class SpansPlan:
    """What will be measured of the spans of a prompt, known before any weight is read."""

    subject: Subject
    texts: Sequence[str]  # of the spans
    tokens: Sequence[TokenIds]  # of the spans
    others: TokenIds  # that replace a span [TEXTS, tokens of the longest]
    target: str | int
    facts: Mapping[str, Any]

    def announce(self) -> None:
        """Tell the user, before the work, how much memory and time it takes."""
        subject, n = self.subject, self.facts["tokens"]
        spans_by_order = spans.spans_by_order(len(self.texts))
        replacements = TEXTS * sum(map(len, spans_by_order.values()))
        passes = 2 * len(spans_by_order) + replacements  # a backward pass counts as a forward one
        seconds = 2.0 * subject.size.parameters * n * passes
        seconds /= operations_per_second(subject.device, subject.precision)
        what = f"{len(self.texts)} spans of {n} tokens in {len(spans_by_order)} orders"
        subject.announce(what, subject.size.memory(n, n, subject.precision, recomputed=False), seconds)


def plan_spans(
    subject: Subject,
    texts: Sequence[str],
    others: Iterable[str],
    target: str,
    sample_seed: int,
    *,
    prompt: str,
    sources: Mapping[str, str],
    separation: str,
) -> SpansPlan:
    """Cut a prompt of these spans into tokens, and draw what replaces them from `others`.

    The page also says the name of the `prompt`, the `sources` of prompt and text, and what stands between spans
    (`separation`).

    Raises InputError where the prompt has fewer than three spans or more tokens than the model takes, or where the
    others have too few.
    """
    tokenizer, before = subject.tokenizer, subject.before
    documents = list(first_characters(CHARACTERS, others))
    spans.require_three(texts)
    first = without_start(texts[0], tokenizer, before)
    start_twice, texts = first != texts[0], [first, *texts[1:]]
    tokens = span_tokens(texts, tokenizer)
    whole = set(np.concatenate(tokens).tolist())
    n, most = len(spans.joined(tokens, range(len(tokens)), before)), opening.longest(subject.config)
    if most is not None and n > most:
        raise InputError(f"the prompt has {n} tokens, but {subject.name} takes {most}; shorten it")
    differentiated, target_in_words = find_target(target, tokenizer)
    orders = spans.spans_by_order(len(texts))
    recut = sum(
        encoded(tokenizer, "".join(texts[span] for span in order)).ids != list(spans.joined(tokens, order))
        for order in orders
    )
    facts = {
        "name": subject.name,
        "prompt": prompt,
        "sources": {"model": subject.origin, **sources},
        "device": subject.device,
        "untrained": subject.untrained,
        "parted": separation,
        "precision": subject.precision,
        "weights": subject.quantisation,
        "sha256": hashlib.sha256("".join(texts).encode()).hexdigest(),
        "tokens": n,
        "before": [tokenizer.id_to_token(token) for token in before],
        "start left out": start_twice,
        "special": [tokenizer.id_to_token(token) for token in special_tokens(tokenizer) if token in whole],
        "orders": len(orders),
        "recut": recut,
        "texts": TEXTS,
        "read": {"documents": len(documents), "sha256": documents_digest(documents)},
        "target": target_in_words,
        "seed": sample_seed,
        "versions": provenance.versions(),
    }
    replacing = draw_replacing_tokens(documents, tokenizer, max(map(len, tokens)), seed(sample_seed, "card", "spans"))
    return SpansPlan(subject, texts, tokens, replacing, differentiated, facts)


def measure_planned_spans(plan: SpansPlan, model: PreTrainedModel) -> Spans:
    """Measure an open `model` as planned. Raises InputError where token ids lie beyond its embeddings."""
    subject = plan.subject
    prompt_tokens = spans.joined(plan.tokens, range(len(plan.tokens)), subject.before)
    opening.require_known_tokens(np.append(prompt_tokens, plan.others), model, subject.name)
    table = spans.measure_spans(model, plan.tokens, plan.others, before=subject.before, target=plan.target)
    expected = spans.next_token(model, prompt_tokens)
    token = int(expected.argmax())
    next_token = subject.tokenizer.decode([token]) or subject.tokenizer.id_to_token(token) or f"token {token}"
    prediction = {"token": next_token, "probability": float(expected[token])}
    return Spans(plan.texts, table.assign(span=table["span"] + 1), {**plan.facts, "next": prediction})


def describe_separation(separator: str | None) -> str:
    """Say in words what stands between the spans of a prompt."""
    return f"parted by {'blank lines' if separator is None else repr(separator)}"


def span_tokens(texts: Sequence[str], tokenizer: Tokenizer) -> list[TokenIds]:
    """Return the tokens of the prompt that spans make together, by the span in which each begins: int64 [tokens].

    One after the other they are the tokens of the prompt. Raises InputError where a span has none.
    """
    whole = encoded(tokenizer, "".join(texts))
    ends = np.cumsum([len(text) for text in texts])
    span_of_token = np.searchsorted(ends[:-1], [begin for begin, _ in whole.offsets], side="right")
    span_of_token, ids = np.maximum.accumulate(span_of_token), np.array(whole.ids, np.int64)
    tokens_by_span = [ids[span_of_token == span] for span in range(len(texts))]
    for span, tokens in enumerate(tokens_by_span, start=1):
        if not len(tokens):
            raise InputError(f"span {span} of the prompt has no token of its own; name another separator")
    return tokens_by_span


def draw_replacing_tokens(documents: Sequence[str], tokenizer: Tokenizer, length: int, sample_seed: int) -> TokenIds:
    """TEXTS times so many tokens of documents in an order drawn by a seed, one after the other: int64 [TEXTS, length].

    Raises InputError where the documents have fewer.
    """
    order = np.random.default_rng(sample_seed).permutation(len(documents))
    stream = chain.from_iterable(encoded(tokenizer, documents[place]).ids for place in order)
    token_ids = list(islice(stream, TEXTS * length))
    if len(token_ids) < TEXTS * length:
        raise InputError(
            f"the text has {len(token_ids)} tokens, but replacing the longest span by {TEXTS} texts takes "
            f"{TEXTS * length}; give more text"
        )
    return np.array(token_ids, np.int64).reshape(TEXTS, length)
