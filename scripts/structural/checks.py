import pandas as pd

from position_bias.running import artifacts, runtime
from position_bias.structural import checks, checks_content


def replicates(paths):
    columns = [*checks.LABELS, "estimator", "variant", "statistic", "replicate", "value"]
    return [artifacts.read_table(path, columns, undefined=True) for path in paths]


with runtime.job(snakemake.log[0]):
    scale, level = snakemake.params.scale, snakemake.params.level
    similarity = artifacts.read_table(snakemake.input.similarity, ["way", "region", "layer", "value"])
    monotonicity = artifacts.read_table(snakemake.input.monotonicity, ["kernel", "layer", "violations", "shortfall"])
    tables = [
        checks.checks(pd.concat(replicates(snakemake.input.replicates)), scale, level),
        *(
            checks.checks(values, scale, level, checks.DURING_TRAINING)
            for values in replicates(snakemake.input.during_training)
        ),
        checks_content.checks(similarity, monotonicity, scale),
    ]
    for path in snakemake.output:
        artifacts.write_table(path, pd.concat(tables))
