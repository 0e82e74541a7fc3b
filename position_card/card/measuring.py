"""What a card says of one decoder is measured here: prompts of every length pass through it.

The same steps measure a model in memory and one that the command opens.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from transformers import PreTrainedModel

from position_card.card import texts as of_texts
from position_card.card.borrowed import borrowed
from position_card.card.measured import Measured, Recalled, Replaced
from position_card.card.subject import Subject
from position_card.core import provenance
from position_card.core.runtime import InputError, announce, seed
from position_card.measures import recall, replacement
from position_card.measures.cost import LARGE, require_room
from position_card.measures.measure import PREDICTED, Quantities, measure_decoder
from position_card.measures.passes import Resumption
from position_card.models import opening
from position_card.models.tokens import TokenIds, encoded

EVERY = 8  # prompts, after which a measurement is kept
TARGETS = {
    "p": "the probability of the most likely next token",
    "log-p": "the logarithm of the probability of the most likely next token",
    "contrast": "the logit of the most likely next token less that of the second",
}
REPLACED = RECALLED = 16  # prompts whose tokens are replaced, contexts of recall, where nothing else is asked for
WORDS, CUE = 128, 3  # of a context; that are repeated
LONG = 256  # tokens: where longer prompts are asked for, contexts are as long as the longest of them
FORWARD = 4  # times as many tokens as else pass at once where nothing is kept for a backward pass
FEWEST_PLACES = 8  # of a context that recall is measured in: each eighth has one


@dataclass(frozen=True)
class Options:
    """How a card is measured."""

    lengths: tuple[int, ...] = (64, 256)  # tokens of the prompts, as far as the model goes and as the text has enough
    prompts: int = 64  # of each length, or as many as the text has
    replaced: int | None = None  # of the longest, whose tokens are replaced; None: REPLACED up to LARGE parameters
    tokens_per_batch: int = 0  # that pass through the model at once; 0: as many as there is room for
    activation_checkpointing: bool = False
    target: str = "p"  # what influence is the gradient of: a key of TARGETS, or a token
    seed: int = 0  # of the prompts and the tokens that replace others
    recalled: int | None = None  # contexts in which repeated passages are looked for; None: RECALLED up to LARGE

    def __post_init__(self) -> None:
        """Raise InputError for numbers that no card can be measured with."""
        whole = [("lengths", n, opening.SHORTEST) for n in self.lengths] + [("prompts", self.prompts, of_texts.LEAST)]
        whole += [(name, getattr(self, name) or 0, 0) for name in ("replaced", "recalled", "tokens_per_batch", "seed")]
        for name, value, least in whole:
            if not isinstance(value, int) or value < least:
                raise InputError(f"{name} is {value!r}; give a whole number of at least {least}")


def operations_per_second(device: str, precision: str) -> float:
    """How fast a device multiplies matrices as they occur in models."""
    matrix = torch.ones(512, 1024, dtype=getattr(torch, precision), device=device)
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        (matrix @ matrix.mT).sum().item()
        taken.append(time.perf_counter() - began)
    return 2 * 512 * 512 * 1024 / min(taken)


@dataclass(frozen=True)
class Contexts:
    """What recall is measured in."""

    words: TokenIds  # [V] that the contexts are drawn from
    drawn: TokenIds  # [C, n + CUE], with a cue of other words behind each

    @property
    def n(self) -> int:
        """Words of a context."""
        return self.drawn.shape[1] - CUE


@dataclass(frozen=True)
class Plan:
    """What will be measured, known before any weight is read."""

    subject: Subject
    options: Options
    prompts: Mapping[int, of_texts.Prompts]  # by length
    at_once: Mapping[int, int]  # tokens, by length
    target: str | int  # what influence is the gradient of, a token by its id
    replaced: int  # prompts of the longest length
    contexts: Contexts | None  # of recall
    facts: Mapping[str, Any]  # what the card says of all this

    @property
    def bytes(self) -> float:
        """How much memory measuring takes, about."""
        size, precision = self.subject.size, self.subject.precision
        recomputed = self.options.activation_checkpointing
        return max(size.memory(n, self.at_once[n], precision, recomputed=recomputed) for n in self.prompts)

    def seconds(self) -> float:
        """How long measuring takes, about, by the time of a product of matrices on this device."""
        size, precision = self.subject.size, self.subject.precision
        recomputed = self.options.activation_checkpointing
        counted = {n: size.of_prompt(n, precision, recomputed=recomputed) for n in self.prompts}
        passes = sum(counted[n].operations * len(drawn.tokens) for n, drawn in self.prompts.items())
        n = max(self.prompts)
        forward = counted[n].operations / n / (3 if recomputed else 2)  # operations a token, about
        again = self.replaced * sum(n - position for position in replacement.chosen_positions(n))
        if of := self.contexts:
            again += len(of.drawn) * (of.n + CUE * (1 + len(recall.places(of.n, CUE))))
        return (passes + forward * again) / operations_per_second(self.subject.device, precision)

    def announce(self) -> None:
        """Say before the work what it takes."""
        lengths = " and ".join(f"{len(drawn.tokens)} prompts of {n} tokens" for n, drawn in self.prompts.items())
        self.subject.announce(lengths, self.bytes, self.seconds())


def plan(subject: Subject, texts: Iterable[str], options: Options, text: str, origin: str) -> Plan:
    """Choose prompts and batches for a model of this size. `text` is what texts are called, `origin` where they are of.

    Raises InputError where the model takes too few tokens, or the text has too few prompts.
    """
    name, config, fast, known = subject.name, subject.config, subject.tokenizer, subject.size
    fitting = opening.lengths(config, options.lengths)
    for n in sorted(set(options.lengths) - set(fitting)):
        announce(f"{name}: the model takes {max(fitting)} tokens, so prompts of {n} are cut to that")
    documents = list(of_texts.up_to(of_texts.CHARACTERS, texts))
    target, described = target_of(options.target, fast)
    prompts = of_texts.prompts(documents, fast, subject.before, fitting, options.prompts, options.seed)
    recomputed = options.activation_checkpointing
    at_once = {
        n: options.tokens_per_batch or known.batch(n, subject.precision, subject.device, recomputed=recomputed)
        for n in prompts
    }
    small = known.parameters <= LARGE
    wanted = REPLACED * small if options.replaced is None else options.replaced
    asked = RECALLED * small if options.recalled is None else options.recalled
    n = max(fitting) if max(fitting) > LONG else WORDS
    contexts, why_not = _contexts(subject, asked, n, documents, options.seed)
    if why_not:
        announce(f"{name} is measured without recall: {why_not}")
    stored = subject.quantisation
    said = {
        "model": {
            "type": config.model_type,
            "untrained": subject.untrained,
            "weights": f"{stored} of a GGUF file, unpacked to {subject.precision}" if stored else None,
            **known.facts,
        },
        "read": {"documents": len(documents), "sha256": of_texts.digest(documents)},
        "prompts": {str(n): drawn.noted() for n, drawn in prompts.items()},
        "predicted": PREDICTED,
        "target": described,
        "before": [fast.id_to_token(token) for token in subject.before],
        "asked": list(options.lengths),
        "longest": opening.longest(config),
        "without recall": why_not,
        "precision": subject.precision,
        "device": subject.device,
        "tokens_per_batch": {str(n): tokens for n, tokens in at_once.items()},
        "versions": provenance.versions(),
        "name": name,
        "text": text,
        "sources": {"model": subject.origin, "text": origin},
    }
    return Plan(subject, options, prompts, at_once, target, min(wanted, options.prompts), contexts, said)


def _contexts(
    subject: Subject, count: int, n: int, documents: list[str], chosen_by: int
) -> tuple[Contexts | None, str | None]:
    """Draw so many contexts of the commonest words of a text for a model; or say why not.

    They have n words, or as many as leave room for what stands before them and for the cue.
    """
    if not count:
        return None, None
    longest = opening.longest(subject.config)
    n = n if longest is None else min(n, longest - len(subject.before) - CUE)
    if n < CUE + FEWEST_PLACES:
        return None, f"the model takes {longest} tokens, and a context of so few has too few places"
    try:
        words = recall.common_words(documents, subject.tokenizer, n, CUE)
    except InputError as error:
        return None, str(error)
    drawn = recall.random_contexts(words, n, count, CUE, seed(chosen_by, "card", "recall"))
    return Contexts(words, drawn), None


def target_of(target: str, tokenizer: Tokenizer) -> tuple[str | int, str]:
    """What influence is the gradient of, a key of TARGETS or the id of a token, and the same in words.

    A token is named as the tokenizer has it, or as it stands in a text. Raises InputError where it is no single token.
    """
    if target in TARGETS:
        return target, TARGETS[target]
    found = tokenizer.token_to_id(target)
    ids = [found] if found is not None else encoded(tokenizer, target).ids
    if len(ids) != 1:
        raise InputError(f"target {target!r} is {len(ids)} tokens; name one, or {', '.join(TARGETS)}")
    return int(ids[0]), f"the probability that the next token is {target!r}"


def open_and_carry_out(plan: Plan, place: Path, folder: Path, every: int, run: object) -> Measured:
    """Open the model at the place of a plan, and measure it as `carry_out` does.

    Raises InputError where there is too little memory, before weights are read.
    """
    subject, recomputed = plan.subject, plan.options.activation_checkpointing
    require_room(subject.name, plan.bytes, subject.placed, recomputed=recomputed, precision=subject.precision)
    with borrowed(subject.opened(place, plan.options.seed, folder)) as decoder:
        return carry_out(plan, decoder, folder, every, [run, subject.untrained, subject.placed])


def carry_out(
    plan: Plan, model: PreTrainedModel, folder: Path | None = None, every: int = EVERY, run: object = None
) -> Measured:
    """Measure an open `model` as planned.

    With a `folder`, what every so many prompts have shown is kept there, and a killed measurement of the same `run`
    goes on from it. Raises InputError as `measure_decoder` does.
    """
    for drawn in [*(of.tokens for of in plan.prompts.values()), *([plan.contexts.drawn] if plan.contexts else [])]:
        opening.require_known_tokens(drawn, model, plan.subject.name)
    settings = [run, vars(plan.options), plan.subject.precision, transformers.__version__, PREDICTED]

    def resumption(name: str, n: int, every: int) -> Resumption | None:
        return Resumption(folder / f"{name}.safetensors", [*settings, n], every) if folder else None

    lengths = {
        n: measure_decoder(
            model,
            drawn.tokens,
            plan.at_once[n],
            documents=drawn.documents,
            quantities=Quantities(target=plan.target),
            activation_checkpointing=plan.options.activation_checkpointing,
            resumption=resumption(f"n{n}", n, every),
            section=None,
        )
        for n, drawn in plan.prompts.items()
    }
    longest = max(lengths)
    replaced = _replaced(plan, model, longest) if plan.replaced else None
    recalled = None
    if of := plan.contexts:
        found = recall.measure_recall(
            model,
            of.drawn,
            of.words,
            CUE,
            FORWARD * plan.at_once[longest],
            before=plan.subject.before,
            resumption=resumption("recalled", of.n, 1),
            section=None,
        )
        recalled = Recalled(of.n, CUE, len(of.words), found)
    return Measured(lengths, {**plan.facts, "bytes": plan.bytes}, replaced, recalled)


def _replaced(plan: Plan, model: PreTrainedModel, n: int) -> Replaced:
    """Replace the first token, that of the text where another stands before it, some in the middle, and the last."""
    prompts = plan.prompts[n].tokens[: plan.replaced]
    positions = replacement.chosen_positions(n, len(plan.subject.before))
    others = replacement.donors(prompts, positions, seed(plan.options.seed, "card", "replaced", n))
    effects = replacement.changes(model, prompts, positions, others, plan.at_once[n])
    return Replaced(n, tuple(positions), effects)
