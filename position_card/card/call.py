"""The calls that measure a model in memory: `position_card.measure` and `position_card.documents`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedModel

from position_card.card.card import Card
from position_card.card.documents_measuring import DocumentsOptions, measure_planned_documents, plan_documents
from position_card.card.documents_page import Documents
from position_card.card.measuring import PROMPTS, CardOptions, measure_card, plan_card
from position_card.card.subject import Subject
from position_card.core.runtime import InputError
from position_card.measures.cost import decoder_size
from position_card.models import opening
from position_card.probe import forward
from position_card.probe.measurable import measurable
from position_card.texts.records import read_records, records_of


def measure(
    model: nn.Module,
    tokenizer: Any,
    texts: str | Iterable[str],
    *,
    lengths: Sequence[int] = (64, 256),
    prompts: int = PROMPTS,
    replace: int | None = None,
    recall: int | None = None,
    questions: bool = True,
    plain: bool = False,
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

    Influence, residual mixing and rollouts are those of Herasimchyk et al. 2026 (arXiv:2602.16837, Sections 6.3 and 3,
    Eq. 1). The card measures two more: what replacing a token changes, and where in its context the model finds a
    repeated passage.

    Args:
        model: A decoder of transformers that predicts the next token, on any device and in any precision; also one
            that DDP, `torch.compile`, Accelerate or PEFT has wrapped.
        tokenizer: That of the model, a fast one: of `AutoTokenizer`, or a `tokenizers.Tokenizer`.
        texts: Documents, or a single one. Their first 4,000,000 characters are read.
        lengths: Tokens of a prompt, at least 9. A length that the model does not take is cut to the longest that it
            does, and one of which the texts have fewer than 8 prompts is left out.
        prompts: Prompts of each length, at least 8, or as many as the texts have. Each is a window of one document.
        replace: Prompts of the longest length in which tokens are replaced by others. None: 8, or none where that
            would take more than ten minutes.
        recall: Contexts of random words in which repeated passages are looked for. None: 8, or none where that would
            take more than ten minutes.
        questions: Whether built-in questions about invented facts are asked, with which the card begins.
        plain: Whether they are written without the chat template of the tokenizer.
        tokens_per_batch: Tokens that pass through the model at once. 0: as many as memory allows.
        activation_checkpointing: Whether to take less memory, and a third more time.
        target: What influence is the gradient of: "p", the probability of the most likely next token; "log-p", its
            logarithm; "contrast", its logit less that of the second; or a token, of which it is the probability.
        seed: It draws prompts, replacing tokens, contexts and the replicates of intervals.
        threads: Threads that torch computes with. None: as many as it has.
        replicates: How often documents and contexts are resampled for intervals. Where the prompts of a length are of
            fewer than 8 documents, prompts are resampled.
        level: Level of the intervals, between 0 and 1.
        name: What the card calls the model.
        text: What the card calls the texts.

    Returns:
        The card, whose `tables` say what was measured, and in which units.

    Raises:
        InputError: A model, a tokenizer, texts or a number cannot be measured; one line says why, and the remedy.
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level!r}; give a number between 0 and 1, such as 0.95")
    options = CardOptions(
        tuple(lengths),
        prompts,
        replace,
        recall,
        questions,
        plain,
        tokens_per_batch,
        activation_checkpointing,
        target,
        seed,
    )
    with _measurable_subject(model, tokenizer, threads, name) as (decoder, subject):
        documents, template = [texts] if isinstance(texts, str) else texts, partial(opening.template_of, tokenizer)
        card_plan = plan_card(subject, documents, options, text, "in memory", template)
        return Card(measure_card(card_plan, decoder), replicates, level, seed)


def documents(
    model: nn.Module,
    tokenizer: Any,
    records: str | Iterable[Mapping[str, Any]],
    *,
    rotate: bool = False,
    generate: int = 0,
    prefix: str | None = None,
    plain: bool = False,
    seed: int = 0,
    threads: int | None = None,
    name: str = "model",
    text: str = "records",
) -> Documents:
    """Measure where in a prompt the documents belong that hold an answer, and leave the model as it was.

    The documents that hold the answer stand at five places among the others of their record. At each place the whole
    answer has a probability, and is right or not. Records of options are asked in as many orders as there are options.

    Args:
        model: As in `measure`.
        tokenizer: As in `measure`. One of `AutoTokenizer` that has a chat template writes prompts by it.
        records: A file of records, .jsonl or .jsonl.gz, or the objects that its lines hold. At least 8 must fit. Each
            has `question`, `answers` and `ctxs`; or `messages` and `documents`; or `question`, `choices` and `answer`.
        rotate: Whether every document stands at every place, in all rotations, in place of five places of the gold
            ones.
        generate: How many tokens the model says itself. An answer is right where it says it. 0: where each of its
            tokens is the most probable one.
        prefix: How the answer begins. None: "Answer:", or nothing where records are messages.
        plain: Whether to write prompts without the chat template.
        seed: It draws the resamples of the ratio of means.
        threads: As in `measure`.
        name: What the page calls the model.
        text: What the page calls the records.

    Returns:
        What was found, with a page and the sentence that decides.

    Raises:
        InputError: A model, a tokenizer or records cannot be measured; one line says why, and the remedy.
    """
    if isinstance(records, str):
        record_set, origin = read_records(records), records
    else:
        record_set, origin = records_of(enumerate(records, start=1)), "in memory"
    options = DocumentsOptions(rotate, generate, prefix, plain, seed)
    with _measurable_subject(model, tokenizer, threads, name) as (decoder, subject):
        template = opening.template_of(tokenizer)
        return measure_planned_documents(
            plan_documents(subject, record_set, template, options, text, {"records": origin}), decoder
        )


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
