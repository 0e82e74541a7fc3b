"""The model that is measured, as far as it is known before any weight is read."""

from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer
from transformers import PretrainedConfig, PreTrainedModel

from position_card.core.runtime import announce, seed
from position_card.measures.cost import DecoderSize, cost_in_words, decoder_size
from position_card.models import opening


@dataclass(frozen=True)
class Subject:
    """A model with its tokenizer, in files or in memory."""

    name: str  # as the card calls it
    origin: str  # where it comes from, in words
    config: PretrainedConfig
    size: DecoderSize
    tokenizer: Tokenizer
    before: list[int]  # tokens that the tokenizer puts before a text
    precision: str
    device: str
    untrained: int | None = None  # the number of an untrained copy
    quantisation: str | None = None  # how the weights of a GGUF file are stored
    gpus: int = 1  # over which the weights are spread
    tokenizer_note: str | None = None  # what the file says of its tokenizer that is not done

    @property
    def placed(self) -> str:
        """Where the weights are put, as `opening.open_decoder` reads it."""
        return self.device if self.gpus == 1 else "balanced"

    def announce(self, measure: str, memory: float | None, seconds: float | None) -> None:
        """Say before the work how many bytes and seconds it takes, as far as that is known."""
        place = self.device if self.gpus == 1 else f"{self.gpus} GPUs"
        announce(
            f"{self.name}: {self.size.parameters:,} parameters in {self.precision} on {place}; measuring {measure} "
            f"takes {cost_in_words(memory, seconds)}"
        )

    def open(self, place: Path, sample_seed: int, folder: Path) -> PreTrainedModel:
        """Open the model at a place, or its untrained copy, which is written into a folder meanwhile."""
        if self.untrained is None:
            return opening.open_decoder(place, self.placed, self.precision, self.config)
        weights_seed = seed(sample_seed, "card", "untrained", self.untrained)
        return opening.open_untrained(place, weights_seed, folder, self.placed, self.precision)


def read_subject(
    place: Path,
    name: str,
    origin: str,
    device: str,
    precision: str = "auto",
    untrained: int | None = None,
    tokenizer: Path | None = None,
    gpus: int = 1,
) -> Subject:
    """Describe the model in a directory or GGUF file, or its untrained copy; `tokenizer` may lie at another place.

    Raises InputError where the model or the tokenizer cannot be opened.
    """
    config, files = opening.require_decoder(place), opening.files_of(place)
    size = decoder_size(files.parameters, config)
    return Subject(
        name,
        origin,
        config,
        size,
        *opening.open_tokenizer(tokenizer or place),
        size.precision if precision == "auto" else precision,
        device,
        untrained,
        files.gguf.quantisation if files.gguf else None,
        gpus,
        opening.tokenizer_note(tokenizer or place),
    )
