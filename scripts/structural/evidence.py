import numpy as np
import pandas as pd

from position_bias.running import artifacts, runtime
from position_bias.structural import checks


def means(paths, names, axes):
    """Means over prompts of the arrays `names` [prompts, *axes] of measurements, a row a value."""
    for path in paths:
        labels, tensors = artifacts.read_labels(path), artifacts.read_tensors(path, *names)
        for name, values in tensors.items():
            mean = values.mean(0)
            indices = dict(zip(axes, np.indices(mean.shape).reshape(len(axes), -1), strict=True))
            yield pd.DataFrame({**labels, "quantity": name, **indices, "value": mean.ravel()})


with runtime.job(snakemake.log[0]):
    given, out = snakemake.input, snakemake.output
    tables = {
        out.profiles: artifacts.read_tables(given.profiles, ["estimator", "variant", "position", "value"]),
        out.statistics: artifacts.read_tables(given.statistics, ["variant", "statistic", "value"], undefined=True),
        out.compared: pd.concat(
            checks.compared(artifacts.read_table(path, checks.REPLICATES, undefined=True), snakemake.params.level)
            for path in given.replicates
        ),
        out.mixing: pd.concat(means(given.mixing, ("frobenius", "token"), ("layer",))),
        out.content: pd.concat(means(given.content, ("diagonal", "below"), ("layer", "head"))),
        out.losses: artifacts.read_tables(given.losses, ["model", "seed", "step", "split", "loss"]),
        out.runs: artifacts.read_tables(given.runs, ["commit", "cpu_minutes"]),
    }
    for path, table in tables.items():
        artifacts.write_table(
            path, table.round({"value": 7, "low": 7, "high": 7, "loss": 6}).assign(scale=snakemake.params.scale)
        )
