import pandas as pd

from position_bias import artifacts, runtime
from position_bias.claims import structural

with runtime.job(snakemake.log[0]):
    columns = [*structural.LABELS, "estimator", "variant", "statistic", "replicate", "value"]
    values = pd.concat(artifacts.read_table(path, columns) for path in snakemake.input.replicates)
    checks = structural.checks(values, snakemake.params.scale, snakemake.params.level)
    for path in snakemake.output:
        artifacts.write_table(path, checks)
