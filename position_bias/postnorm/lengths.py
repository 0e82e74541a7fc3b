"""This module puts lengths of sequences beside the one that was trained on."""

import numpy as np
import numpy.typing as npt

BINS = ("up to L", "L to 2L", "2L to 4L", "beyond 4L")
_EDGES = (1, 2, 4)  # trained lengths at which a bin ends


def bin_of(length: npt.ArrayLike, trained: npt.ArrayLike) -> npt.NDArray[np.str_]:
    """Return the bin of every length, where `trained` is L: of BINS, whose upper ends belong to them."""
    return np.array(BINS)[np.searchsorted(_EDGES, np.asarray(length) / np.asarray(trained), side="left")]
