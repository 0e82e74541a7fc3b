"""The tasks of Zsamboki et al. 2025 draw sequences, and say after each token which outputs are legal next.

The target of a position is one of its legal outputs, at random. Everything is drawn for several seeds at once, on the
CPU; what each seed draws depends on the task, the seed, the purpose and the numbers asked for, not on its mates.

Axes: S seeds, M sequences, T tokens.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from position_bias.postnorm import languages
from position_bias.postnorm.languages import Language
from position_bias.running import runtime


@dataclass(frozen=True)
class Sequences:
    """Inputs, and the legal outputs after each token. One at least is legal everywhere."""

    tokens: Tensor  # int64 [S, M, T]
    values: Tensor | None  # float32 [S, M, T], a number that each token carries, where the task is valued
    legal: Tensor  # bool [S, M, T, outputs]


class Task(Protocol):
    """What a trainer has to know of a task."""

    valued: ClassVar[bool]  # whether tokens carry a value

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> int:
        """Count the different tokens."""

    @property
    def outputs(self) -> int:
        """Count the outputs to choose among."""

    @property
    def longest(self) -> int | None:
        """Return the greatest length; None where there is no limit."""

    def sequences(self, seeds: Sequence[int], purpose: object, count: int, length: int) -> Sequences:
        """`count` sequences of a `length` for each seed; another `purpose` gives others.

        Raises ValueError for a count below 1 and a length that does not fit the task.
        """


@dataclass(frozen=True)
class SetComplement:
    """Distinct tokens in random order; legal are those that have not been yet. At least one has to be left."""

    vocabulary: int
    valued: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.vocabulary < 2:
            raise ValueError(f"vocabulary = {self.vocabulary}: a set and its complement need at least 2 tokens")

    @property
    def name(self) -> str:
        return f"set-complement-{self.vocabulary}"

    @property
    def inputs(self) -> int:
        return self.vocabulary

    @property
    def outputs(self) -> int:
        return self.vocabulary

    @property
    def longest(self) -> int:
        return self.vocabulary - 1

    def sequences(self, seeds: Sequence[int], purpose: object, count: int, length: int) -> Sequences:
        _check(self, count, length)
        order = _uniform(_generators(seeds, self.name, purpose), (count, self.vocabulary)).argsort(-1)
        place = order.argsort(-1)  # of each token in the order
        return Sequences(order[..., :length].contiguous(), None, place[..., None, :] > torch.arange(length)[:, None])


@dataclass(frozen=True)
class Maximum:
    """Random classes, each with a priority uniform in [0, 1); legal is the class of the greatest priority so far."""

    classes: int
    valued: ClassVar[bool] = True
    longest: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise ValueError(f"classes = {self.classes}: there is something to retrieve from 2 classes on")

    @property
    def name(self) -> str:
        return f"maximum-{self.classes}"

    @property
    def inputs(self) -> int:
        return self.classes

    @property
    def outputs(self) -> int:
        return self.classes

    def sequences(self, seeds: Sequence[int], purpose: object, count: int, length: int) -> Sequences:
        _check(self, count, length)
        chance, priority = _uniform(_generators(seeds, self.name, purpose), (2, count, length)).unbind(1)
        tokens = (chance * self.classes).long()
        greatest = tokens.gather(-1, priority.cummax(-1).indices)
        return Sequences(tokens, priority.contiguous(), functional.one_hot(greatest, self.classes).bool())


@dataclass(frozen=True)
class Formal:
    """Prefixes of words of a language: a begin token, then `length` symbols, each uniform among the live ones.

    Inputs are the symbols and the begin token; outputs are the symbols and the end, which is legal after a word. Begin
    and end have the index after the last symbol. So T = length + 1. Raises ValueError for a language in which a prefix
    may have no live symbol (see `languages.uniform_choices`).
    """

    language: Language
    valued: ClassVar[bool] = False
    longest: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        languages.uniform_choices(self.language)

    @property
    def name(self) -> str:
        return self.language.name

    @property
    def inputs(self) -> int:
        return self.language.symbols + 1

    @property
    def outputs(self) -> int:
        return self.language.symbols + 1

    def sequences(self, seeds: Sequence[int], purpose: object, count: int, length: int) -> Sequences:
        _check(self, count, length)
        choices = torch.from_numpy(languages.uniform_choices(self.language)).expand(length, -1, -1)
        uniform = _uniform(_generators(seeds, self.name, purpose), (count, length))
        symbols, states = _walk(self.language, choices, uniform)
        legal = torch.from_numpy(languages.legal_outputs(self.language))[states]
        return Sequences(_begun(self.language, symbols), None, legal)


@dataclass(frozen=True)
class Nested:
    """Prefixes of well-nested brackets that are nowhere deeper than `depth`, with what brackets of any depth allow.

    So an opening bracket is legal everywhere, but is never seen at `depth`. Sequences are those of `Formal` for the
    Dyck language of that depth, and have at most `longest` symbols. Raises ValueError where the two have no language.
    """

    kinds: int
    depth: int
    longest: int
    valued: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.depth >= self.longest:
            raise ValueError(f"depth = {self.depth}: sequences of {self.longest} symbols are no deeper; lower it")
        languages.dyck(self.kinds, self.depth)
        languages.dyck(self.kinds, self.longest + 1)

    @property
    def name(self) -> str:
        return f"nested-{self.kinds}-{self.depth}"

    @property
    def inputs(self) -> int:
        return 2 * self.kinds + 1

    @property
    def outputs(self) -> int:
        return 2 * self.kinds + 1

    @property
    def unbounded(self) -> Language:
        """The Dyck language whose depth no sequence exhausts."""
        return languages.dyck(self.kinds, self.longest + 1)

    def sequences(self, seeds: Sequence[int], purpose: object, count: int, length: int) -> Sequences:
        shallow = Formal(languages.dyck(self.kinds, self.depth)).sequences(seeds, purpose, count, length)
        return Sequences(shallow.tokens, None, self.legal(shallow.tokens))

    def legal(self, tokens: Tensor) -> Tensor:
        """What may follow each token of prefixes `[S, M, T]` that begin with the begin token, `[S, M, T, outputs]`."""
        language = self.unbounded
        after, state, states = torch.from_numpy(language.transitions), torch.zeros_like(tokens[..., 0]), []
        for symbol in tokens.unbind(-1):
            state = torch.where(symbol == language.symbols, 0, after[state, symbol.clamp(max=language.symbols - 1)])
            states.append(state)
        return torch.from_numpy(languages.legal_outputs(language))[torch.stack(states, -1)]

    def depths(self, tokens: Tensor) -> Tensor:
        """How many brackets are open after each token, int64, of the shape of `tokens`."""
        opens, closes = tokens < self.kinds, (tokens >= self.kinds) & (tokens < 2 * self.kinds)
        return (opens.long() - closes.long()).cumsum(-1)


def task(name: str) -> Task:
    """The task of a name: `set-complement-16`, `maximum-10`, or a language as `languages.language` has it.

    `nested-2-3-16` has brackets of 2 kinds, to a depth of 3, in at most 16 symbols. Raises ValueError for a name that
    is none.
    """
    if complement := re.fullmatch(r"set-complement-(\d+)", name):
        return SetComplement(int(complement[1]))
    if maximum := re.fullmatch(r"maximum-(\d+)", name):
        return Maximum(int(maximum[1]))
    if nested := re.fullmatch(r"nested-(\d+)-(\d+)-(\d+)", name):
        return Nested(*map(int, nested.groups()))
    if name.startswith(("dyck", "tomita")):
        return Formal(languages.language(name))
    raise ValueError(
        f"task = {name!r} is unknown; give set-complement-SIZE, maximum-CLASSES, dyck-KINDS-DEPTH or tomita-NUMBER"
    )


def fits(task: Task, length: int) -> bool:
    """Whether a task has sequences of this length."""
    return length >= 1 and (task.longest is None or length <= task.longest)


def draw_targets(legal: Tensor, uniform: Tensor) -> Tensor:
    """Draw one of the `legal[..., outputs]`, each as likely, int64 `[...]`, by numbers `uniform[...]` in [0, 1).

    Raises ValueError where nothing is legal.
    """
    rank = legal.cumsum(-1, dtype=torch.int32)
    if not (total := rank[..., -1]).all():
        raise ValueError("legal has a position without any legal output; every position needs one")
    chosen = (uniform * total).int()  # this many legal outputs are passed over
    return (rank <= chosen[..., None]).sum(-1)


def words(language: Language, seeds: Sequence[int], purpose: object, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Draw words of `length` symbols and near misses, both tokens `[S, count, length + 1]` with the begin token.

    A word is the walk of `Formal`, conditioned on being a word of which some replacement of one symbol is none; its
    near miss is one of these replacements, each as likely. So the two differ in one token. Raises ValueError where
    there is no such word; `languages.has_near_misses` tells before.
    """
    _check_count(count)
    if not languages.has_words(language, length):
        raise ValueError(f"length = {length}: {language.name} has no word of that length; see has_words")
    if not languages.has_near_misses(language, length):
        raise ValueError(f"length = {length}: {language.name} has no near miss of that length; see has_near_misses")
    choices = torch.from_numpy(languages.choices_to_words(language, length))
    generators = _generators(seeds, language.name, "words", purpose)
    members = torch.empty(len(generators), count, length, dtype=torch.int64)
    near_misses = torch.empty_like(members)
    wanted = torch.ones(members.shape[:2], dtype=torch.bool)
    while wanted.any():  # seldom more than a few rounds; each seed draws whole rounds, whatever its mates still want
        uniform = _uniform(generators, (count, length + 1))
        symbols, states = _walk(language, choices, uniform[..., :length])
        spoiling = _spoiling(language, symbols, states).flatten(-2)
        found = wanted & spoiling.any(-1)
        at = draw_targets(spoiling[found], uniform[found][:, -1])
        replaced = symbols[found].scatter(1, at[:, None] // language.symbols, at[:, None] % language.symbols)
        members[found], near_misses[found] = symbols[found], replaced
        wanted &= ~found
    return _begun(language, members), _begun(language, near_misses)


def _check(task: Task, count: int, length: int) -> None:
    _check_count(count)
    if not fits(task, length):
        limit = "" if task.longest is None else f" and at most {task.longest}"
        raise ValueError(f"length = {length}: sequences of {task.name} have at least 1 token{limit}")


def _check_count(count: int) -> None:
    if count < 1:
        raise ValueError(f"count = {count}: draw at least 1 sequence")


def _generators(seeds: Sequence[int], *parts: object) -> list[torch.Generator]:
    if not seeds:
        raise ValueError("seeds is empty: draw for at least 1 seed")
    return [torch.Generator().manual_seed(runtime.seed(seed, *parts)) for seed in seeds]


def _uniform(generators: list[torch.Generator], shape: tuple[int, ...]) -> Tensor:
    """Numbers in [0, 1) of every seed, float32 `[S, *shape]`."""
    return torch.stack([torch.rand(shape, generator=generator) for generator in generators])


def _walk(language: Language, choices: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Symbols `[S, M, T]` and the states before, between and after them, `[S, M, T + 1]`, of walks from the start.

    `choices[T, states, symbols]` are the probabilities at each step; `uniform[S, M, T]` decides.
    """
    total = choices.cumsum(-1)
    # the last is 1 without rounding, and stays above every uniform number: no symbol of probability 0 is chosen
    below = (total / total[..., -1:].clamp(min=torch.finfo(total.dtype).tiny)).float()
    after = torch.from_numpy(language.transitions)
    state = torch.zeros(uniform.shape[:-1], dtype=torch.int64)
    symbols, states = [], [state]
    for step, chance in enumerate(uniform.unbind(-1)):
        symbol = (chance[..., None] >= below[step, state]).sum(-1)
        state = after[state, symbol]
        symbols.append(symbol)
        states.append(state)
    return torch.stack(symbols, -1), torch.stack(states, -1)


def _spoiling(language: Language, symbols: Tensor, states: Tensor) -> Tensor:
    """Whether replacing symbol T of a word by another spoils it, `[S, M, T, symbols]`; from what `_walk` gives."""
    size = len(language.accepting)
    after = torch.from_numpy(language.transitions)
    after = functional.pad(
        after.where(after >= 0, size), (0, 0, 0, 1), value=size
    )  # dead: the last state, and stays so
    is_word = torch.zeros(size + 1, dtype=torch.bool)
    is_word[:size] = torch.from_numpy(language.accepting)
    is_word = is_word.expand(
        *symbols.shape[:-1], -1
    )  # [S, M, states + 1]: whether the rest, read in a state, ends well
    spoils = []
    for position in reversed(range(symbols.shape[-1])):
        spoils.append(~is_word.gather(-1, after[states[..., position]]))
        is_word = is_word.gather(-1, after.T[symbols[..., position]])
    return torch.stack(spoils[::-1], dim=-2)


def _begun(language: Language, symbols: Tensor) -> Tensor:
    """With the begin token in front."""
    return functional.pad(symbols, (1, 0), value=language.symbols)
