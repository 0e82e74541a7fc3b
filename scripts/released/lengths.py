import pandas as pd

from position_bias.released import profiles, written
from position_bias.released.models import ALONG_LENGTHS, MODELS
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    samples, sums = [], []
    inputs = zip(MODELS, snakemake.input.mixing, snakemake.input.content, snakemake.input.slopes, strict=True)
    for model, mixing, content, slopes in inputs:
        schedule = written.read_schedule(mixing, content)
        found = profiles.along_lengths(
            snakemake.params.lengths, ALONG_LENGTHS, schedule, written.read_slopes(slopes), MODELS[model].head_dim
        )
        for tables, table in zip((samples, sums), found, strict=True):
            tables.append(table.assign(model=model))
    artifacts.write_table(snakemake.output.samples, pd.concat(samples))
    artifacts.write_table(snakemake.output.sums, pd.concat(sums))
