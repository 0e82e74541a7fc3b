"""This module measures recall by place: where must a word stand in the prompt so that a decoder finds it?

A context is WORDS different common words in random order. After it, a few of its words that stand side by side come
again, the cue, and a decoder that recalls the passage goes on with the word that followed there. A longer context has
the same words in pieces that stand apart in prose, so that only the distance grows: a longer list would have rarer
words. No answer format, instruction or language is needed. Influence and replacement ask what changes a prediction;
recall asks whether it is right.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Literal

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from position_card.core.runtime import InputError
from position_card.measures import passes
from position_card.measures.passes import UNABLE, Resumption, reuses
from position_card.probe import forward
from position_card.probe.precision import in_float32
from position_card.probe.streaming import with_streaming
from position_card.rollout.parts import RecallScores
from position_card.rollout.passages import WORDS, places, word_positions
from position_card.texts.tokens import TokenIds, encode

WORD = re.compile(r"\b[a-z]{3,}\b")
PACKED = 512  # tokens of questions that stand in one row behind a context, at most
COMMON = 200  # words that those of contexts are drawn from
Way = Literal["packed", "apart", "anew"]  # in one row behind a context, each behind its copy, or with all tokens
# The ways that go on from a context, the cheapest first, and what a question does where a model cannot be asked so.
SHORT_CUTS: Mapping[Way, str] = {"packed": "passes by itself", "apart": "passes all tokens"}


def common_words(texts: Iterable[str], tokenizer: Tokenizer, n: int, cue: int) -> TokenIds:
    """Return the tokens of the COMMON most frequent words of `texts` that are one token each, with the blank before.

    The words of contexts of n tokens, and a cue of others, are drawn from them, or from as many as the texts have.

    Words have three lower-case letters or more; of equally frequent ones the first of the alphabet come first. Raises
    InputError where the texts have too few.
    """
    least = min(n, WORDS) + cue
    counts = Counter(word for text in texts for word in WORD.findall(text))
    before = encode(tokenizer, "the").ids  # some tokenizers put a blank before every text
    token_ids: list[int] = []
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        ids = encode(tokenizer, f"the {word}").ids[len(before) :]
        if len(ids) == 1 and ids[0] not in token_ids:
            token_ids.append(ids[0])
        if len(token_ids) == COMMON:
            break
    if len(token_ids) < least:
        raise InputError(
            f"recall needs {least} words that are single tokens, but the text has {len(token_ids)}; give more text"
        )
    return np.array(token_ids)


def prose(texts: Iterable[str], tokenizer: Tokenizer, n: int) -> TokenIds:
    """Return the tokens of all `texts`, one after the other, from which contexts of n tokens have what is no word.

    There are none where a context has words alone. Raises InputError where the texts have too few.
    """
    if n <= WORDS:
        return np.empty(0, np.int64)
    token_ids = np.concatenate([np.array(encode(tokenizer, text).ids, np.int64) for text in texts])
    if len(token_ids) < n - WORDS:
        raise InputError(
            f"recall in {n} tokens needs {n - WORDS} tokens of prose, but the text has {len(token_ids)}; give more text"
        )
    return token_ids


def random_contexts(
    words: TokenIds, n: int, count: int, cue: int, seed: int, prose: TokenIds | None = None
) -> TokenIds:
    """Draw `count` contexts of n tokens, and for each a `cue` of words that it does not have: [count, n + cue].

    A context is n different `words` in random order. One of more than WORDS tokens has so many of them, and between
    their pieces what follows one another in the `prose` from a random place. Raises ValueError where there are too few
    words or too few tokens of prose.
    """
    word_places = word_positions(n)
    if len(words) < len(word_places) + cue:
        raise ValueError(f"{len(words)} words are too few for contexts of {len(word_places)} and a cue of {cue} others")
    generator = np.random.default_rng(seed)
    contexts = np.empty((count, n + cue), np.int64)
    own_and_cue = [*word_places, *range(n, n + cue)]
    contexts[:, own_and_cue] = np.stack([generator.permutation(words)[: len(word_places) + cue] for _ in range(count)])
    if between := n - len(word_places):
        if prose is None or len(prose) < between:
            raise ValueError(f"the prose is shorter than {between} tokens")
        starts = generator.integers(0, len(prose) - between + 1, count)
        contexts[:, np.setdiff1d(np.arange(n), word_places)] = prose[starts[:, None] + np.arange(between)]
    return contexts


def question_count(n: int, cue: int) -> int:
    """Count the questions about a context of n tokens: one for each place, and one that is foreign."""
    return len(places(n, cue)) + 1


def questions_at_once(tokens_per_batch: int, length: int) -> int:
    """Count the questions that pass at once where each comes with its context, both together of so many tokens."""
    return max(1, tokens_per_batch // length)


def way_by_shapes(model: PreTrainedModel, n: int, cue: int, before: int = 0) -> Way:
    """Return the way to ask about contexts of n tokens behind `before` others, as far as shapes of tensors tell it.

    The `model` may hold no values (torch's device meta). With values, `measure_recall` may find another one.
    """
    context = torch.zeros(before + n, dtype=torch.int64, device="meta")
    questions = context[:cue].expand(question_count(n, cue), cue)
    for way in SHORT_CUTS:
        try:
            _last_answer(_Reader(model, context, questions, len(questions), way))
        except UNABLE:
            continue
        return way
    return "anew"


@in_float32
@with_streaming
def measure_recall(
    model: PreTrainedModel,
    contexts: TokenIds,
    words: TokenIds,
    cue: int,
    tokens_per_batch: int,
    *,
    before: Sequence[int] = (),
    resumption: Resumption | None = None,
    section: str | None = "measure",
    say: Callable[[Way], None] = lambda way: None,
) -> RecallScores:
    """Ask a decoder for every place of contexts and their foreign cues, [C, n + cue], of these `words` [V].

    `before` are the tokens that prompts of the model begin with. A context is read once, and questions about it stand
    behind it in one row, where the model predicts the same so; else as many are asked at once as `tokens_per_batch`
    holds with their contexts. The arithmetic is in float32, whatever the weights are. The first context shows how to
    ask, which `say` is given before the next one is read. With a `resumption`, the others are not asked about again
    after an interruption. Raises InputError where memory is too small; `section` tells where the configuration has the
    remedy, if it does.
    """
    device = forward.device(model)
    tally, vocabulary = passes.Tally(), torch.from_numpy(words).to(device)
    n, batch = contexts.shape[1] - cue, questions_at_once(tokens_per_batch, contexts.shape[1] + len(before))
    begins = torch.from_numpy(places(n, cue)).to(device)

    def reader_of(row: Tensor, way: Way) -> _Reader:
        context, foreign = row[:-cue], row[-cue:]
        passages = context[begins[:, None] + torch.arange(cue, device=device)]
        questions = torch.cat([foreign[None], passages])
        return _Reader(model, torch.cat([row.new_tensor(before), context]), questions, batch, way)

    first = torch.from_numpy(contexts[0]).to(device)
    with passes.within_memory(f"while recall was tried on a context of {n} tokens; {passes.MORE_GPUS}"):
        reader = _first_reader(partial(reader_of, first))
    say(reader.way)

    def ask(rows: Tensor) -> None:
        nonlocal reader
        for row in rows:
            if not torch.equal(row, first):
                reader = reader_of(row, reader.way)
            prior, answers = reader.answers.split([1, len(begins)])
            followed = row[begins + cue]
            likeliest = vocabulary[answers[:, vocabulary].argmax(-1)]
            tally.add_prompts("probability", answers.gather(1, followed[:, None])[None, :, 0])
            tally.add_prompts("correct", (likeliest == followed).double()[None])
            tally.add_prompts("prior", prior[:, followed])

    fewer = reader.way != "packed" and batch > 1
    remedies = [f"lower {passes.key('tokens_per_batch', section)}"] if fewer else []
    passes.run(
        contexts,
        contexts.shape[1],
        ask,
        tally,
        device=device,
        section=section,
        remedies=remedies,
        resumption=resumption,
    )
    return RecallScores(*(tally.by_prompt(name).astype(np.float64) for name in RecallScores._fields))


class _Reader:
    """A model that reads a context [n] when it is asked, and predicts what follows after questions [P, c] about it.

    As many questions pass at once as one row holds, and otherwise at most a `batch`.
    """

    def __init__(self, model: PreTrainedModel, context: Tensor, questions: Tensor, batch: int, way: Way) -> None:
        self.model, self.context, self.questions, self.way = model, context[None], questions, way
        self.at_once = _in_one_row(questions.shape[1]) if way == "packed" else batch

    @cached_property
    def cache(self) -> Cache | None:
        """What the model keeps of the context; None where it reads the context with every question."""
        return None if self.way == "anew" else forward.next_token(self.model, self.context, keep=True)[1]

    @cached_property
    def answers(self) -> Tensor:
        """The distribution of the next token after the context and each question, float64 [P, V]."""
        return torch.cat([self.answers_to(part) for part in self.questions.split(self.at_once)])

    def answers_to(self, questions: Tensor) -> Tensor:
        """Return the same of questions that pass at once."""
        if self.cache is None:
            tokens = torch.cat([self.context.expand(len(questions), -1), questions], 1)
            return forward.next_token(self.model, tokens)[0]
        if self.way == "packed":
            return forward.after_each(self.model, self.cache, questions)
        return forward.next_token(self.model, questions, forward.repeat(self.cache, len(questions)), keep=True)[0]


def _first_reader(reader_of: Callable[[Way], _Reader]) -> _Reader:
    """Return the reader of the first context in the cheapest way that predicts the same as reading all tokens anew.

    That is tried on its last question, about the end of the context, which must not see those before it.
    """
    anew = reader_of("anew")
    answer_anew = anew.answers_to(anew.questions[-1:])
    for way, otherwise in SHORT_CUTS.items():
        reader = reader_of(way)
        if reuses(lambda: answer_anew, partial(_last_answer, reader), "every question", otherwise):
            return reader
    return anew


def _last_answer(reader: _Reader) -> Tensor:
    """Answer the last question by a reader, [1, V], after others, which must change nothing.

    In a row all are asked, since a window of attention may hold a shorter one; of questions apart, two of them twice.
    """
    if reader.way == "packed":
        return reader.answers[-1:]
    pair = reader.questions[[1, -1]]
    reader.answers_to(pair)
    return reader.answers_to(pair)[-1:]


def _in_one_row(cue: int) -> int:
    """Count the questions of a cue each that stand in one row behind a context."""
    return max(1, PACKED // cue)
