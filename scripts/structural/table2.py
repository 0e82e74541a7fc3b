import pandas as pd

from position_bias.running import artifacts, runtime
from position_bias.structural import tables

with runtime.job(snakemake.log[0]):
    columns = [*tables.KEYS, "variant", "statistic", "value", "low", "high"]
    statistics = artifacts.read_tables(snakemake.input.statistics, columns, undefined=True)
    published = None
    if snakemake.params.published:
        printed = artifacts.read_table(
            snakemake.input.published, ["table", "dataset", "n", "model", "variant", "value"]
        )
        published = printed[printed["table"] == snakemake.params.published]
    table = tables.distances(statistics, snakemake.params.statistics, published)
    artifacts.write_table(snakemake.output.csv, table)
    readable = [tables.readable(table, name).assign(statistic=name) for name in snakemake.params.statistics]
    artifacts.write_table(snakemake.output.md, pd.concat(readable))
