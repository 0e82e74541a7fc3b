import pandas as pd

from position_bias.retrieval import agreement, checks
from position_bias.running import artifacts, runtime
from position_bias.verdicts import predictions, verdict

with runtime.job(snakemake.log[0]):
    level, kept = snakemake.params.level, snakemake.input.evidence
    predicted = predictions.predictions(snakemake.input.predictions, "retrieval")
    profiles = artifacts.read_table(snakemake.input.profiles, agreement.COLUMNS)
    tables = [checks.checks(profiles, predicted, snakemake.params.scale, level)]
    if kept:
        of_long_runs = artifacts.read_tables(kept, ["scale", *agreement.COLUMNS])
        tables += checks.of_evidence(of_long_runs, predicted, level)
    table = pd.concat(tables, ignore_index=True)
    artifacts.write_table(snakemake.output.csv, table)
    artifacts.write_table(snakemake.output.md, verdict.readable(table))
