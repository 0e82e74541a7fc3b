"""Decoders with random weights, and what measures them: copies of the first blocks of a pretrained one."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from position_bias.structural.initialization import RandomNetwork
from position_card.measures.measure import Quantities, measure_decoder
from position_card.models.opening import open_untrained
from position_card.rollout.attention import Array


def parts(
    directory: Path,
    of_study: Iterable[RandomNetwork],
    prompts: NDArray[np.int64],
    drawn_by: int,
    folder: Path,
    device: str,
    positions: Literal["own", "none"],
) -> Mapping[str, Callable[[], Array]]:
    """Return a function for each network, by its name, that measures it on the `prompts`, int64 [N, n].

    It returns influence of all tokens, then lambda of all layers, float64 [N, n + L]. Networks of one depth with the
    same seed draw the same numbers, times their deviations. Their weights pass through `folder`, which is empty again
    afterwards. The function raises InputError as `open_untrained` and `measure_decoder` do.
    """

    def influence_and_mixing(network: RandomNetwork) -> Array:
        seed, layers = drawn_by + network.seed, network.layers
        model = open_untrained(directory, seed, folder, device, "float32", network.deviation, positions, layers)
        measurement = measure_decoder(model, prompts, prompts.shape[1], quantities=Quantities(matrices_up_to=0))
        assert measurement.influence is not None
        return np.hstack([measurement.influence, measurement.mixing["frobenius"]]).astype(np.float64)

    return {network.name: partial(influence_and_mixing, network) for network in of_study}
