"""This module cuts prompts from texts: windows of one document each, after the tokens that a model begins with."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from position_card.core import runtime
from position_card.core.runtime import InputError, announce
from position_card.texts.tokens import TokenIds, encode, encode_texts, special_tokens, without_start

# What windows are taken from a document: every whole one, side by side; the first, the paper's rule for web text; or
# one, which is drawn.
WindowRule = Literal["every", "first", "one"]
LEAST = 8  # prompts; intervals over fewer mean nothing


class Prompts(NamedTuple):
    """Prompts of n tokens, and which document of a text each is of."""

    tokens: TokenIds  # [N, n]
    documents: NDArray[np.int64]  # [N], counted from 0


class PromptSet(NamedTuple):
    """Prompts of one length n, and what a card says of them."""

    tokens: TokenIds  # [N, n]
    documents: NDArray[np.int64]  # which document each is of [N]
    entropy: float  # of the frequencies of tokens in all windows of this length, in nats
    special: Mapping[str, int]  # how many prompts hold a special token of the text, by the token

    def facts(self) -> dict[str, Any]:
        """Return what a card says of the prompts, and a digest of their tokens, which tells them from others."""
        digest = hashlib.sha256(self.tokens.tobytes()).hexdigest()
        documents = len(np.unique(self.documents))
        return {"documents": documents, "entropy": self.entropy, "special": dict(self.special), "sha256": digest}


def windows(texts: Iterable[str], tokenizer: Tokenizer, n: int, rule: WindowRule) -> Iterator[tuple[int, TokenIds]]:
    """Yield windows of `n` token ids, int64 [n], lazily, each after the number of its text. None crosses documents.

    "every": all non-overlapping ones from the start of a document, its tail dropped. "first": the first `n` tokens
    of each document that has as many. "one": as "every", of which `sample_prompts` draws one a document.
    """
    for document, ids in enumerate(encode_texts(texts, tokenizer)):
        starts = range(0, len(ids) - n + 1, n)
        for start in starts[:1] if rule == "first" else starts:
            yield document, ids[start : start + n]


def sample_prompts(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    n: int,
    prompts: int,
    rule: WindowRule,
    seed: int,
    remedy: str = "lower lengths.*.prompts or lengths.*.tokens, or take more text (hub_datasets.*.documents)",
    before: Sequence[int] = (),
) -> Prompts:
    """Choose `prompts` of `n` tokens: windows of the texts, none twice, each after the tokens `before`.

    "every": drawn by `seed` from all windows, such that a larger sample contains the smaller one. "one": the same, of
    each document the window that is drawn first. "first": the first ones of the stream, read no further than needed;
    the seed plays no part. Raises InputError, with `remedy`, where there are too few.
    """
    length = n - len(before)
    all_windows = windows(texts, tokenizer, length, rule)
    sample = list(islice(all_windows, prompts) if rule == "first" else all_windows)
    if rule != "first":
        sample = [sample[index] for index in np.random.default_rng(seed).permutation(len(sample))]
    if rule == "one":
        of_document: dict[int, TokenIds] = {}
        for document, window in sample:
            of_document.setdefault(document, window)
        sample = list(of_document.items())
    if len(sample) < prompts:
        raise InputError(
            f"{prompts} windows of {length} tokens are asked for, but the text has {len(sample)}; {remedy}"
        )
    documents, token_ids = zip(*sample[:prompts], strict=True)
    return Prompts(preceded(before, np.stack(token_ids)), np.array(documents))


def preceded(before: Sequence[int], windows: TokenIds) -> TokenIds:
    """Return prompts of windows of tokens, int64 [N, m], each after the tokens `before` that a model begins with."""
    return np.hstack([np.tile(np.array(before, np.int64), (len(windows), 1)), windows])


def draw_prompts(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    before: Sequence[int],
    lengths: Sequence[int],
    limit: int,
    sample_seed: int,
) -> dict[int, PromptSet]:
    """Draw up to `limit` prompts of each length n that the text has at least LEAST of, by `sample_seed`.

    A prompt is the tokens `before`, which the tokenizer puts first by itself, and a window of one document; none twice.
    Documents that begin with these tokens, written out, do not get them twice. What special tokens prompts hold besides
    is announced. Raises InputError where the text has too few of every length.
    """
    sets, counts = {}, {}
    bare_texts = [without_start(text, tokenizer, before) for text in texts]
    if twice := sum(bare != text for bare, text in zip(bare_texts, texts, strict=True)):
        start = "".join(str(tokenizer.id_to_token(token)) for token in before)
        announce(f"{start}, with which {twice} of {len(texts)} documents begin, is there once: the tokenizer puts it")
    special = special_tokens(tokenizer)
    for n in lengths:
        if n <= len(before) + 1:
            continue
        all_windows = list(windows(bare_texts, tokenizer, n - len(before), "every"))
        counts[n] = len(all_windows)
        if len(all_windows) < LEAST:
            announce(f"length {n} is left out: the text has {len(all_windows)} prompts of it, fewer than {LEAST}")
            continue
        generator = np.random.default_rng(runtime.seed(sample_seed, "card", n))
        sample = [all_windows[index] for index in generator.permutation(len(all_windows))[:limit]]
        documents = np.array([document for document, _ in sample])
        token_ids = np.stack([window for _, window in sample])
        holding = {str(tokenizer.id_to_token(token)): int((token_ids == token).any(-1).sum()) for token in special}
        holding = {token: count for token, count in holding.items() if count}
        for token, count in holding.items():
            announce(f"{count} of {len(sample)} prompts of {n} tokens hold {token}, a special token")
        entropy = _entropy(np.concatenate([window for _, window in all_windows]))
        sets[n] = PromptSet(preceded(before, token_ids), documents, entropy, holding)
    if not sets:
        longest = max((len(encode(tokenizer, text).ids) for text in bare_texts), default=0)
        raise InputError(
            f"the text gives {_counts_in_words(counts)}; at least {LEAST} of one length are needed, and its longest "
            f"document has {longest} tokens. Give more or longer documents, or shorter lengths"
        )
    return sets


def _entropy(token_ids: TokenIds) -> float:
    """Return the entropy of the frequencies of token ids, in nats."""
    _, counts = np.unique(token_ids, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _counts_in_words(counts: Mapping[int, int]) -> str:
    """Say how many prompts a text has of each length, for example: 1 prompt of 64 tokens and 0 of 256."""
    if not counts:
        return "no prompts"
    (n, count), *rest = counts.items()
    parts = [f"{count} {'prompt' if count == 1 else 'prompts'} of {n} tokens"]
    parts += [f"{count} of {n}" for n, count in rest]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if rest else parts)
