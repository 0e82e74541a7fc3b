"""The tasks of Zsamboki et al. 2025 draw sequences, and say after each token which outputs are legal next.

The target of a position is one of its legal outputs, at random. Everything is drawn for several seeds at once, on the
CPU; what each seed draws depends on the task, the seed, the purpose and the numbers asked for, not on its mates.

Axes: S seeds, M sequences, T tokens.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from position_bias.postnorm import languages
from position_bias.postnorm.languages import Language
from position_card.core import runtime


@dataclass(frozen=True)
class Sequences:
    """Inputs, and the legal outputs after each token. One at least is legal everywhere."""

    tokens: Tensor  # int64 [S, M, T]
    values: Tensor | None  # float32 [S, M, T], a number that each token carries, where the task has values
    legal: Tensor  # bool [S, M, T, outputs]

    def to_device(self, device: str, part: slice = slice(None)) -> "Sequences":
        """Return all sequences, or a `part` of those of every seed, on a device."""
        values = None if self.values is None else self.values[:, part].to(device)
        return Sequences(self.tokens[:, part].to(device), values, self.legal[:, part].to(device))


@dataclass(frozen=True)
class SequenceTask:
    """What a trainer has to know of a task."""

    name: str
    size: int  # different inputs, and as many outputs
    # of seeds, a purpose, a count and a length: `count` sequences for each seed; another purpose gives others
    sequences: Callable[[Sequence[int], object, int, int], Sequences]
    has_values: bool = False  # whether tokens carry a value
    longest: int | None = None  # greatest length; None where there is no limit
    language: Language | None = None  # whose prefixes its sequences are, where words are told from near misses


def set_complement(vocabulary: int) -> SequenceTask:
    """Return the task whose sequences are distinct tokens in random order; legal is every token that has not come yet.

    Sequences have at most `vocabulary` - 1 tokens, so that one is left.
    """
    name = f"set-complement-{vocabulary}"

    def sequences(seeds: Sequence[int], purpose: object, count: int, length: int) -> Sequences:
        order = _uniform(_generators(seeds, name, purpose), (count, vocabulary)).argsort(-1)
        # of each token in the order
        place = torch.empty_like(order).scatter_(-1, order, torch.arange(vocabulary).expand_as(order))
        return Sequences(order[..., :length].contiguous(), None, place[..., None, :] > torch.arange(length)[:, None])

    return SequenceTask(name, vocabulary, sequences, longest=vocabulary - 1)


def maximum(classes: int) -> SequenceTask:
    """Return the task whose tokens are random classes, each with a priority uniform in [0, 1).

    Legal is the class of the greatest priority so far.
    """
    name = f"maximum-{classes}"

    def sequences(seeds: Sequence[int], purpose: object, count: int, length: int) -> Sequences:
        chance, priority = _uniform(_generators(seeds, name, purpose), (2, count, length)).unbind(1)
        tokens = (chance * classes).long()
        greatest = tokens.gather(-1, priority.cummax(-1).indices)
        return Sequences(tokens, priority.contiguous(), functional.one_hot(greatest, classes).bool())

    return SequenceTask(name, classes, sequences, has_values=True)


def formal(language: Language) -> SequenceTask:
    """Prefixes of words of a language: a begin token, then `length` symbols, each uniform among the live ones.

    Inputs are the symbols and the begin token; outputs are the symbols and the end, which is legal after a word. Begin
    and end have the index after the last symbol. So T = length + 1.
    """

    def sequences(seeds: Sequence[int], purpose: object, count: int, length: int) -> Sequences:
        choices = torch.from_numpy(languages.uniform_choices(language)).expand(length, -1, -1)
        symbols, states = _walk(
            language, choices, _uniform(_generators(seeds, language.name, purpose), (count, length))
        )
        legal = torch.from_numpy(languages.legal_outputs(language))[states]
        return Sequences(_with_begin(language, symbols), None, legal)

    return SequenceTask(language.name, language.symbols + 1, sequences, language=language)


@dataclass(frozen=True)
class Nested:
    """Well-nested brackets that are nowhere deeper than `depth`, with what brackets of any depth allow.

    So an opening bracket is legal everywhere, but is never seen at `depth`. Sequences have at most `longest` symbols.
    """

    kinds: int
    depth: int
    longest: int

    @property
    def deep_language(self) -> Language:
        """Return the Dyck language of the same kinds that is deeper than any sequence can get."""
        return languages.dyck(self.kinds, self.longest + 1)

    @property
    def task(self) -> SequenceTask:
        """Return the task with the prefixes of the Dyck language of `depth` (`formal`) and the outputs of `legal`."""
        shallow = formal(languages.dyck(self.kinds, self.depth))

        def sequences(seeds: Sequence[int], purpose: object, count: int, length: int) -> Sequences:
            tokens = shallow.sequences(seeds, purpose, count, length).tokens
            return Sequences(tokens, None, self.legal(tokens))

        return SequenceTask(f"nested-{self.kinds}-{self.depth}", shallow.size, sequences, longest=self.longest)

    def legal(self, tokens: Tensor) -> Tensor:
        """What may follow each token of prefixes `[S, M, T]` that begin with the begin token, `[S, M, T, outputs]`."""
        language = self.deep_language
        table, state, states = torch.from_numpy(language.transitions), torch.zeros_like(tokens[..., 0]), []
        for symbol in tokens.unbind(-1):
            state = torch.where(symbol == language.symbols, 0, table[state, symbol.clamp(max=language.symbols - 1)])
            states.append(state)
        return torch.from_numpy(languages.legal_outputs(language))[torch.stack(states, -1)]

    def depths(self, tokens: Tensor) -> Tensor:
        """How many brackets are open after each token, int64, of the shape of `tokens`."""
        opens, closes = tokens < self.kinds, (tokens >= self.kinds) & (tokens < 2 * self.kinds)
        return (opens.long() - closes.long()).cumsum(-1)


def nested(name: str) -> Nested:
    """Return the brackets of a name: `nested-2-3-16` has 2 kinds, nested to a depth of 3, in at most 16 symbols."""
    return Nested(*map(int, re.findall(r"\d+", name)))


def task(name: str) -> SequenceTask:
    """Return the task of a name: `set-complement-16`, `maximum-10`, `nested-2-3-16`, or a language such as `tomita-5`.

    Raises ValueError as `languages.language` does.
    """
    match name.split("-"):
        case "set", "complement", vocabulary:
            return set_complement(int(vocabulary))
        case "maximum", classes:
            return maximum(int(classes))
        case "nested", *_:
            return nested(name).task
        case _:
            return formal(languages.language(name))


def draw_targets(legal: Tensor, uniform: Tensor) -> Tensor:
    """Draw one of the `legal[..., outputs]`, each as likely, int64 `[...]`, by numbers `uniform[...]` in [0, 1)."""
    rank = legal.cumsum(-1, dtype=torch.int32)
    skips = (uniform * rank[..., -1]).int()  # this many legal outputs are passed over
    return (rank <= skips[..., None]).sum(-1)


def words(language: Language, seeds: Sequence[int], purpose: object, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Draw words of `length` symbols and near misses, both tokens `[S, count, length + 1]` with the begin token.

    A word is the walk of `formal`, conditioned on being a word of which some replacement of one symbol is none; its
    near miss is one of these replacements, each as likely. So the two differ in one token. Raises ValueError where
    there is no such word; `languages.has_near_misses` tells before.
    """
    if not languages.has_near_misses(language, length):
        raise ValueError(f"length = {length}: {language.name} has no near miss of that length; see has_near_misses")
    choices = torch.from_numpy(languages.choices_to_words(language, length))
    generators = _generators(seeds, language.name, "words", purpose)
    members = torch.empty(len(generators), count, length, dtype=torch.int64)
    near_misses = torch.empty_like(members)
    open_rows = torch.ones(members.shape[:2], dtype=torch.bool)
    while open_rows.any():  # seldom more than a few rounds; each seed draws whole rounds, whatever its mates still want
        uniform = _uniform(generators, (count, length + 1))
        symbols, states = _walk(language, choices, uniform[..., :length])
        spoiling = _spoiling(language, symbols, states).flatten(-2)
        hits = open_rows & spoiling.any(-1)
        at = draw_targets(spoiling[hits], uniform[hits][:, -1])
        misses = symbols[hits].scatter(1, at[:, None] // language.symbols, at[:, None] % language.symbols)
        members[hits], near_misses[hits] = symbols[hits], misses
        open_rows &= ~hits
    return _with_begin(language, members), _with_begin(language, near_misses)


def _generators(seeds: Sequence[int], *parts: object) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(runtime.seed(seed, *parts)) for seed in seeds]


def _uniform(generators: list[torch.Generator], shape: tuple[int, ...]) -> Tensor:
    """Draw numbers from [0, 1) by the generator of every seed, float32 `[S, *shape]`."""
    return torch.stack([torch.rand(shape, generator=generator) for generator in generators])


def _walk(language: Language, choices: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Symbols `[S, M, T]` and the states before, between and after them, `[S, M, T + 1]`, of walks from the start.

    `choices[T, states, symbols]` are the probabilities at each step; `uniform[S, M, T]` decides.
    """
    total = choices.cumsum(-1)
    # the last is 1 without rounding, and stays above every uniform number: no symbol of probability 0 is chosen
    cumulative = (total / total[..., -1:].clamp(min=torch.finfo(total.dtype).tiny)).float()
    table = torch.from_numpy(language.transitions)
    state = torch.zeros(uniform.shape[:-1], dtype=torch.int64)
    symbols, states = [], [state]
    for step, chance in enumerate(uniform.unbind(-1)):
        symbol = (chance[..., None] >= cumulative[step, state]).sum(-1)
        state = table[state, symbol]
        symbols.append(symbol)
        states.append(state)
    return torch.stack(symbols, -1), torch.stack(states, -1)


def _spoiling(language: Language, symbols: Tensor, states: Tensor) -> Tensor:
    """Whether replacing symbol T of a word by another spoils it, `[S, M, T, symbols]`; from what `_walk` gives."""
    size = len(language.accepting)
    table = torch.from_numpy(language.transitions)
    table = functional.pad(table.where(table >= 0, size), (0, 0, 0, 1), value=size)  # the last state is dead
    # [S, M, states + 1]: whether the rest, read in a state, ends well
    is_word = functional.pad(torch.from_numpy(language.accepting), (0, 1)).expand(*symbols.shape[:-1], -1)
    spoils = []
    for position in reversed(range(symbols.shape[-1])):
        spoils.append(~is_word.gather(-1, table[states[..., position]]))
        is_word = is_word.gather(-1, table.T[symbols[..., position]])
    return torch.stack(spoils[::-1], dim=-2)


def _with_begin(language: Language, symbols: Tensor) -> Tensor:
    """Return tokens `[S, M, T + 1]`: the symbols `[S, M, T]` with the begin token in front."""
    return functional.pad(symbols, (1, 0), value=language.symbols)
