import pandas as pd

from position_bias import artifacts, runtime, tables

with runtime.job(snakemake.log[0]):
    columns = ["model", "checkpoint", "estimator", "variant", "statistic", "value", "low", "high"]
    statistics = pd.concat(artifacts.read_table(path, columns) for path in snakemake.input.statistics)
    table2 = tables.table2(statistics)
    artifacts.write_table(snakemake.output.csv, table2)
    artifacts.write_table(snakemake.output.md, tables.readable(table2))
