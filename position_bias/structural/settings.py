"""What a configuration can ask of `structural`."""

from typing import Annotated

from position_bias.workflow.section import Bounds, Count, Items, Level, Name, Names, section

Prompts = Annotated[int, Bounds(2, 1_000_000)]


@section
class PretrainedPrompts:
    """How many prompts pretrained decoders are measured on."""

    heatmap: Annotated[Prompts, "of the primary data set, at the length lengths.heatmap"]
    standard: Annotated[Prompts, "the same at lengths.standard"]
    long: Annotated[int, Bounds(0, 1_000_000), "the same at lengths.long; 0: it is not measured, for a short context"]
    elsewhere: Annotated[Prompts, "of each other data set, at lengths.standard"]
    copies: Annotated[Prompts, "of the primary data set, for copies with random weights"]
    replaced: Annotated[Prompts, "the first of these prompts, in which single tokens are replaced"]

    def __post_init__(self) -> None:
        for fewer, more in (("replaced", "standard"), ("copies", "standard")):
            if getattr(self, fewer) > getattr(self, more):
                raise ValueError(
                    f"{fewer} = {getattr(self, fewer)} is more than {more} = {getattr(self, more)}, of which these are "
                    "the first; lower it"
                )


@section
class Pretrained:
    """Real decoders, measured by gradients and by replacing single tokens."""

    models: Annotated[
        dict[Name, Annotated[float, Bounds(above=0, most=1), "standard deviation that its weights began with"]],
        "models of hub_models, each with its initializer_range, which GGUF files do not carry",
    ]
    prompts: PretrainedPrompts
    copies: Annotated[Count, "copies with random weights of that deviation; one more has that of the library, .02"]


@section
class CurveSettings:
    """The same decoders, where all tokens of a window of a prompt move towards those of other documents."""

    tokens: Annotated[list[Annotated[int, Bounds(16, 100_000)]], Items(1), "length of prompts, each length"]
    dataset: Annotated[Name, "the data set of datasets or hub_datasets whose test documents are taken"]
    documents: Annotated[int, Bounds(2, 100_000), "of this data set, with one prompt each"]
    donors: Annotated[int, Bounds(1, 1_000), "other documents that tokens move to, of each prompt"]
    steps: Annotated[
        list[Annotated[float, Bounds(above=0, most=1)]], Items(2), "parts of the way, rising; the last is 1"
    ]
    copies: Annotated[int, Bounds(0, 1_000), "copies with random weights, at the first step and the last, of one donor"]
    documents_of_copies: Annotated[int, Bounds(2, 100_000), "the first of these documents, for the copies"]

    def __post_init__(self) -> None:
        if list(self.steps) != sorted(self.steps) or self.steps[-1] != 1:
            raise ValueError(f"steps = {self.steps} do not rise to 1; the last is 1, which replaces a text")
        if self.donors >= self.documents:
            raise ValueError(
                f"donors = {self.donors} leaves no other document of documents = {self.documents}; lower it"
            )
        if self.documents_of_copies > self.documents:
            raise ValueError(
                f"documents_of_copies = {self.documents_of_copies} is more than documents = {self.documents}, of which "
                "these are the first; lower it"
            )


@section
class InitializationSettings:
    """Copies of the first layers of these decoders with random weights: influence by deviation and by depth."""

    deviations: Annotated[
        list[Annotated[float, Bounds(above=0, most=1)]], Items(1), "standard deviations of the weights"
    ]
    layers: Annotated[
        list[Annotated[int, Bounds(1, 1000)]],
        Items(),
        "how many of the decoder's layers copies have; with none, nothing is measured, and evidence/ is shown",
    ]
    seeds: Annotated[Count, "networks of each deviation and depth"]
    prompts: Annotated[Prompts, "of the primary data set"]
    tokens: Annotated[int, Bounds(16, 1_000_000), "of a prompt"]


@section
class SinkSettings:
    """The norm of the first token's residual stream is held at that of others, and three measures are taken again."""

    models: Annotated[list[Name], Items(), "models of structural.pretrained; with none, nothing is measured"]
    tokens: Annotated[int, Bounds(16, 1_000_000), "of a prompt"]
    documents: Annotated[Prompts, "of the primary data set, with one prompt each"]
    words: Annotated[int, Bounds(8, 128), "different words of a context for recall, whose cue is that of recall"]
    contexts: Annotated[int, Bounds(2, 100_000), "of so many words"]


@section
class RecallSettings:
    """Where a passage must stand in a context so that a pretrained decoder goes on with it when it is repeated."""

    tokens: Annotated[list[Annotated[int, Bounds(8, 1_000_000)]], Items(1), "of a context, each length"]
    cue: Annotated[int, Bounds(1, 4), "words of the passage that are repeated"]
    contexts: Annotated[int, Bounds(2, 100_000), "of each length"]


@section
class Structural:
    """Herasimchyk et al. 2026: content, residual mixing and positional bias of language models."""

    fig1: Annotated[Names, "the models of Figure 1, if they are measured; Figure 2 shows the others"]
    pretrained: Pretrained
    curve: CurveSettings
    initialization: InitializationSettings
    sink: SinkSettings
    recall: RecallSettings


@section
class Rollout:
    """Predictions from what was measured, and their intervals."""

    bootstrap: Annotated[int, Bounds(20, 100_000), "resamples of documents behind every interval"]
    level: Level
