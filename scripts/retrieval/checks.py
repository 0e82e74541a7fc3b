import pandas as pd

from position_bias.retrieval import agreement, checks
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    level, kept = snakemake.params.level, snakemake.input.evidence
    tables = [
        checks.checks(artifacts.read_table(snakemake.input.profiles, agreement.COLUMNS), snakemake.params.scale, level)
    ]
    if kept:
        of_long_runs = artifacts.read_tables(kept, ["scale", *agreement.COLUMNS])
        tables += checks.of_evidence(of_long_runs, level)
    for path in snakemake.output:
        artifacts.write_table(path, pd.concat(tables, ignore_index=True))
