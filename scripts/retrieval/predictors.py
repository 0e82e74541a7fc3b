from position_bias.retrieval import agreement, tables
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    profiles = artifacts.read_table(snakemake.input.profiles, agreement.COLUMNS)
    table = tables.predictors(profiles, snakemake.params.level)
    artifacts.write_table(snakemake.output.csv, table)
    artifacts.write_table(snakemake.output.md, tables.readable(table))
