"""How large a decoder is, and what measuring it takes: from its number of parameters and its configuration alone."""

from dataclasses import dataclass
from typing import Any

from position_bias.language_models.measure import PREDICTED

LARGE = 1_000_000_000  # parameters; larger models are opened in bfloat16 where nothing else is asked for
BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
PROCESS = 0.5e9  # bytes that Python takes with the libraries, before it opens a model
BATCH = 1024  # tokens that pass through a model at once, at most
ROOM = {"cpu": 0.7e9, "cuda": 8e9}  # bytes for what the backward pass needs of a batch


@dataclass(frozen=True)
class Size:
    """A decoder's numbers: parameters, layers, heads, width of the residual stream and of the MLP, tokens it knows."""

    parameters: int
    layers: int
    heads: int
    width: int
    inner: int
    vocabulary: int

    @property
    def precision(self) -> str:
        """The precision that it is opened in where none is asked for."""
        return "float32" if self.parameters <= LARGE else "bfloat16"

    def of_prompt(self, n: int, precision: str, *, recomputed: bool) -> float:
        """Bytes that the backward pass needs of one prompt of n tokens, about.

        Of a layer, twelve streams of its width, four of the MLP's, and three matrices of attention; where layers are
        computed again (`recomputed`), of one layer alone, and the stream that enters each of the others. Besides, the
        logits of the tokens that are predicted, their gradients and a copy.
        """
        layer = n * (12 * self.width + 4 * self.inner) + 3 * self.heads * n**2
        streams = layer + self.layers * n * self.width if recomputed else self.layers * layer
        return float(BYTES[precision] * (streams + 3 * (PREDICTED + 1) * self.vocabulary))

    def batch(self, n: int, precision: str, device: str, *, recomputed: bool) -> int:
        """Tokens that pass through the model at once, where nothing else is asked for: at least one prompt."""
        fits = ROOM[device] // self.of_prompt(n, precision, recomputed=recomputed)
        most = BATCH if device == "cpu" else 8 * BATCH
        return n * max(1, min(int(fits), most // n))

    def memory(self, n: int, tokens: int, precision: str, *, recomputed: bool) -> float:
        """Bytes that a measurement of prompts of n tokens takes, about, with so many tokens at once.

        What the process needs besides its model, the weights, a batch, and what is kept: mean attention, and mean
        logits of every head by row and by distance.
        """
        prompts = max(1, tokens // n)
        kept = 4 * self.layers * n * (n if n <= 1024 else 1) + 32 * self.layers * self.heads * n
        weights = self.parameters * BYTES[precision]
        return PROCESS + weights + prompts * self.of_prompt(n, precision, recomputed=recomputed) + kept


def size(parameters: int, config: Any) -> Size:
    """The size of a model with so many parameters and the configuration `config` of `transformers`."""
    text = config.get_text_config()
    width = text.hidden_size
    inner = next(
        (value for name in ("intermediate_size", "ffn_dim", "n_inner") if (value := getattr(text, name, None))),
        4 * width,
    )
    return Size(
        parameters=parameters,
        layers=text.num_hidden_layers,
        heads=text.num_attention_heads,
        width=width,
        inner=inner,
        vocabulary=text.vocab_size,
    )
