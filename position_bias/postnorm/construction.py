"""Our decoder solves the Set Complement Task by hand: constant attention, simplex embeddings, d = v - 1.

Attention is uniform, values are embeddings, and the read-out scores tokens by minus the product with what attention has
averaged. Absent tokens get one logit, present ones another, with a gap as in `theory.LAWS`: C/s where the average is
read as it is, C/sqrt(s(v-s)) where it is normalised first.
"""

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from position_bias.postnorm import tasks, theory
from position_bias.small_networks import decoder
from position_bias.small_networks.decoder import Architecture
from position_card.rollout.statistics import total_variation

LARGE = 1e6  # of what attention adds, so that the last token's embedding in the residual stream does not show beside it

Scheme = Literal["none", "peri"]
LAW: dict[Scheme, str] = {"none": theory.DISPERSED, "peri": theory.NORMALISED}


def weights(v: int, scheme: Scheme, strength: float) -> tuple[Architecture, Mapping[str, Tensor]]:
    """Return the network of a scheme and its parameters, float64, one member.

    Logits are `strength` times minus the product of a simplex vector with the mean of those present, which under `peri`
    is scaled to norm 1 first.
    """
    d = v - 1
    simplex = torch.from_numpy(theory.simplex(v))
    network = Architecture(inputs=v, outputs=v, width=d, placement=scheme)
    zeros, identity = torch.zeros(d, d, dtype=torch.float64), torch.eye(d, dtype=torch.float64)
    norm = {"none": LARGE, "peri": LARGE * math.sqrt(d)}[scheme]  # norm of the output for one token present
    parameters = {
        "embedding": simplex,
        "q0": zeros,
        "k0": zeros,
        "v0": identity,
        "o0": -LARGE * identity,
        "readout": strength / norm * simplex.T,
    }
    if scheme == "peri":
        parameters |= {"attention0_input_gain": identity.sum(0), "attention0_output_gain": LARGE * identity.sum(0)}
    return network, {name: value[None] for name, value in parameters.items()}


def distances(v: int, strength: float, sequences: int, seed: int) -> pd.DataFrame:
    """Return the total variation distance of the construction beside its prediction, for s = 1 .. v - 1 tokens present.

    Columns scheme, v, length (s), predicted, measured (the mean over `sequences`), low and high (their range).
    """
    batch = tasks.set_complement(v).sequences([seed], "construction", sequences, v - 1)
    target = (batch.legal / batch.legal.sum(-1, keepdim=True))[0].double().numpy()
    present = np.arange(1, v)
    rows = []
    for scheme, law in LAW.items():
        network, parameters = weights(v, scheme, strength)
        p = decoder.logits(parameters, network, batch.tokens)[0].softmax(-1).numpy()
        of_network = total_variation(p, target)
        constant = strength * theory.simplex_constant(law, v)
        by_law = theory.total_variation(present, v, theory.law_gap(law, present, v, constant))
        rows.append(
            pd.DataFrame({"scheme": scheme, "v": v, "length": present, "predicted": by_law}).assign(
                measured=of_network.mean(axis=0), low=of_network.min(axis=0), high=of_network.max(axis=0)
            )
        )
    return pd.concat(rows, ignore_index=True)
