from pathlib import Path

import pandas as pd

from position_bias.running import artifacts, runtime
from position_bias.structural import tables

with runtime.job(snakemake.log[0]):
    columns = ["model", "seed", "step", "split", "loss"]
    losses = artifacts.read_tables(snakemake.input.losses, columns)
    trained = losses[["model", "seed"]].drop_duplicates().itertuples(index=False)
    folders = {(model, seed): Path(path) for (model, seed), path in zip(trained, snakemake.input.models, strict=True)}
    table = tables.models(snakemake.params.architectures, folders, losses)
    published = artifacts.read_table(snakemake.input.published, ["model", "parameters", "layers"])
    for path in snakemake.output:
        artifacts.write_table(path, pd.concat([table, published.assign(seed=tables.PUBLISHED)]))
