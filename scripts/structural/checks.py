import pandas as pd

from position_bias.running import artifacts, runtime
from position_bias.structural import (
    checks,
    checks_content,
    checks_long_training,
    checks_printed,
    checks_rotary,
    content,
    rotary,
)
from position_bias.verdicts import predictions, verdict


def replicates(paths):
    return [artifacts.read_table(path, checks.REPLICATES, undefined=True) for path in paths]


with runtime.job(snakemake.log[0]):
    scale, level = snakemake.params.scale, snakemake.params.level
    similarity = artifacts.read_table(snakemake.input.similarity, ["way", "region", "layer", "value"])
    monotonicity = artifacts.read_table(snakemake.input.monotonicity, ["kernel", "layer", "violations", "shortfall"])
    shift = artifacts.read_table(snakemake.input.shift, [*content.LABELS, "share", "low", "high"])
    kernels = [artifacts.read_table(path, [*checks_rotary.LABELS, *rotary.COLUMNS]) for path in snakemake.input.rotary]
    long_training = [artifacts.read_table(path, [*checks.COMPARED, "scale"]) for path in snakemake.input.long_training]
    printed = artifacts.read_table(snakemake.input.published, ["table", "dataset", "model", "variant", "value"])
    predicted = predictions.predictions(snakemake.input.predictions, "structural")
    at_standard = pd.concat(replicates(snakemake.input.at_standard))
    primary = at_standard[at_standard["dataset"] == snakemake.params.primary]
    at_long = pd.concat(replicates(snakemake.input.at_long))
    at_more = replicates(snakemake.input.at_more)
    tables = [
        checks.checks(primary, predicted, scale, level),
        checks.checks(at_standard, predicted, scale, level, checks.EVERY_DATASET),
        checks.checks(at_long, predicted, scale, level, checks.LONG),
        checks.closest(at_long, predicted, scale, level),
        *(
            checks.checks(values, predicted, scale, level, checks.EVERY_LENGTH)
            for values in (at_standard, *at_more, at_long)
        ),
        *(
            checks.checks(values, predicted, scale, level, checks.DURING_TRAINING)
            for values in replicates(snakemake.input.during_training)
        ),
        checks_content.checks(similarity, monotonicity, shift, predicted, scale),
        checks_printed.checks(printed, predicted, scale),
        checks_rotary.checks(kernels, predicted, level),
        *checks_long_training.checks(long_training, predicted),
    ]
    table = pd.concat(tables)
    artifacts.write_table(snakemake.output.csv, table)
    artifacts.write_table(snakemake.output.md, verdict.readable(table))
