import pandas as pd

from position_bias.emergence import checks, evidence
from position_bias.running import artifacts, runtime
from position_bias.verdicts import predictions, verdict

with runtime.job(snakemake.log[0]):
    params = snakemake.params
    predicted = predictions.predictions(snakemake.input.predictions, "emergence")
    trained = evidence.of_run(snakemake.input.curves, snakemake.input.sinks, params.threshold)
    kept = evidence.read_long_runs(params.evidence, params.threshold)
    seen = artifacts.read_table(snakemake.input.seen, checks.SEEN)
    long_runs = (checks.checks(networks, predicted, scale, params.level, seen) for scale, networks in kept.items())
    tables = [checks.checks(trained, predicted, params.scale, params.level), *map(verdict.tested, long_runs)]
    table = pd.concat(tables, ignore_index=True)
    artifacts.write_table(snakemake.output.csv, table)
    artifacts.write_table(snakemake.output.md, verdict.readable(table))
