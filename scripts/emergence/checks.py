import pandas as pd

from position_bias.emergence import checks, evidence
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    params = snakemake.params
    trained = evidence.of_run(snakemake.input.curves, snakemake.input.sinks, params.threshold)
    kept = evidence.trained(params.evidence, params.threshold)
    seen = artifacts.read_table(snakemake.input.seen, evidence.SEEN)
    tables = [
        checks.checks(trained, params.scale, params.level),
        *(evidence.judged(networks, seen, scale, params.level) for scale, networks in kept.items()),
    ]
    for path in snakemake.output:
        artifacts.write_table(path, pd.concat(tables, ignore_index=True))
