import pandas as pd

from position_bias import artifacts, runtime
from position_bias.claims import structural, structure


def replicates(paths):
    columns = [*structural.LABELS, "estimator", "variant", "statistic", "replicate", "value"]
    return [artifacts.read_table(path, columns, undefined=True) for path in paths]


with runtime.job(snakemake.log[0]):
    scale, level = snakemake.params.scale, snakemake.params.level
    similarity = artifacts.read_table(snakemake.input.similarity, ["way", "region", "layer", "value"])
    monotonicity = artifacts.read_table(snakemake.input.monotonicity, ["kernel", "layer", "violations", "shortfall"])
    checks = [
        structural.checks(pd.concat(replicates(snakemake.input.replicates)), scale, level),
        *(
            structural.checks(values, scale, level, structural.DURING_TRAINING)
            for values in replicates(snakemake.input.during_training)
        ),
        structure.checks(similarity, monotonicity, scale),
    ]
    for path in snakemake.output:
        artifacts.write_table(path, pd.concat(checks))
