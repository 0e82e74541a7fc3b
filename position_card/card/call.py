"""The calls that measure a model in memory: `position_card.measure` and `position_card.spans`."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedModel

from position_card.card import sources
from position_card.card.card import Card
from position_card.card.measuring import Options, measure_card, plan_card
from position_card.card.span_measuring import describe_separation, measure_planned_spans, plan_spans
from position_card.card.spans_page import Spans
from position_card.card.subject import Subject
from position_card.card.texts import read_documents
from position_card.core.runtime import InputError
from position_card.measures.cost import decoder_size
from position_card.measures.spans import split
from position_card.models import opening
from position_card.probe import forward
from position_card.probe.measurable import measurable
from position_card.texts import corpus


def measure(
    model: nn.Module,
    tokenizer: Any,
    texts: str | Iterable[str],
    *,
    lengths: Sequence[int] = (64, 256),
    prompts: int = 64,
    replaced: int | None = None,
    recalled: int | None = None,
    tokens_per_batch: int = 0,
    activation_checkpointing: bool = False,
    target: str = "p",
    seed: int = 0,
    threads: int | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    name: str = "model",
    text: str = "text",
) -> Card:
    """Measure the position bias of a model where it lies in memory, and leave it as it was.

    `texts` are documents, or one. Prompts of so many tokens (`lengths`) are cut from them, `prompts` of each length;
    `replaced` says in how many of the longest tokens are replaced by others (None: 16 of a model of up to a billion
    parameters; 0: in none). `recalled` is the number of contexts of random words in which repeated passages are looked
    for (None: 16, as for `replaced`; 0: none). As many prompts pass at once as `tokens_per_batch` holds (0: as memory
    allows), and `activation_checkpointing` takes less memory for a third more work. Influence is the gradient of the
    `target`: "p", the probability of the most likely next token, "log-p", "contrast" to the second, or a token. Torch
    computes with `threads`, or as many as it has. Intervals of this `level` resample documents and contexts
    `replicates` times; where there are fewer than 8 documents, they resample prompts. `name` and `text` are what the
    card calls the two.

    Raises InputError for a model, a tokenizer or texts that cannot be measured, in one line with the remedy.
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level!r}; give a number between 0 and 1, such as 0.95")
    batch = (tokens_per_batch, activation_checkpointing)
    options = Options(tuple(lengths), prompts, replaced, *batch, target, seed, recalled)
    with _measurable_subject(model, tokenizer, threads, name) as (decoder, subject):
        planned = plan_card(subject, [texts] if isinstance(texts, str) else texts, options, text, "in memory")
        return Card(measure_card(planned, decoder), replicates, level, seed)


def spans(
    model: nn.Module,
    tokenizer: Any,
    prompt: str | Sequence[str],
    *,
    separator: str | None = None,
    texts: str | Iterable[str] | None = None,
    target: str = "p",
    seed: int = 0,
    threads: int | None = None,
    name: str = "model",
    prompt_name: str = "prompt",
) -> Spans:
    """Measure what the spans of one prompt weigh, and whether that depends on their place; leave the model as it was.

    `prompt` is a text, whose spans stand between blank lines or between `separator`s, or is a list of spans. The last
    span stays at the end. The tokens that replace a span are drawn by `seed` from other `texts`, by default the prose
    of Python's standard library. `target`, `threads` and `name` are those of `measure`, and `prompt_name` is what the
    page calls the prompt.

    Raises InputError for a model, a tokenizer, a prompt or texts that cannot be measured, in one line.
    """
    pieces = split(prompt, separator) if isinstance(prompt, str) else list(prompt)
    origin = "in memory"
    if texts is None:
        texts, origin = read_documents(sources.source(sources.TEXT, corpus.TEST_SHARE))
    with _measurable_subject(model, tokenizer, threads, name) as (decoder, subject):
        planned = plan_spans(
            subject,
            pieces,
            [texts] if isinstance(texts, str) else texts,
            target,
            seed,
            prompt=prompt_name,
            sources={"prompt": "in memory", "text": origin},
            separation=describe_separation(separator) if isinstance(prompt, str) else "given by the caller",
        )
        return measure_planned_spans(planned, decoder)


@contextmanager
def _measurable_subject(
    model: nn.Module, tokenizer: Any, threads: int | None, name: str
) -> Iterator[tuple[PreTrainedModel, Subject]]:
    """Yield the decoder within a model while it is measurable (`measurable`), and the subject that describes it."""
    with measurable(model, threads) as decoder:
        yield (
            decoder,
            Subject(
                name,
                f"{type(model).__name__} in memory",
                decoder.config,
                decoder_size(sum(weight.numel() for weight in decoder.parameters()), decoder.config),
                *_tokenizer_copy(tokenizer),
                str(decoder.dtype).removeprefix("torch."),
                forward.device(decoder).type,
            ),
        )


def _tokenizer_copy(tokenizer: Any) -> tuple[Tokenizer, list[int]]:
    """Return a copy of a tokenizer without padding and truncation, and the tokens that it puts before a text."""
    fast = tokenizer if isinstance(tokenizer, Tokenizer) else getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(fast, Tokenizer):
        raise InputError(
            f"a tokenizer of the class {type(tokenizer).__name__} is not a fast one; give one of AutoTokenizer or "
            "of the package tokenizers"
        )
    return opening.framing(Tokenizer.from_str(fast.to_str()))
