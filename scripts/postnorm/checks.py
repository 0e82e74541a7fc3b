from position_bias.postnorm import checks
from position_bias.running import artifacts, runtime

TESTS = ["task", "scheme", "seed", "length", "quantity", "value", "trained"]

with runtime.job(snakemake.log[0]):
    inputs = snakemake.input
    table = checks.checks(
        artifacts.read_tables(inputs.tests, TESTS),
        artifacts.read_table(inputs.construction, ["scheme", "v", "length", "predicted", "measured", "low", "high"]),
        artifacts.read_table(inputs.dimension, [*TESTS, "width"]),
        artifacts.read_table(inputs.averaging, [*TESTS, "decay", "weights", "eta"]),
        artifacts.read_table(
            inputs.stability, ["scheme", "layers", "learning_rate", "seed", "iteration", "loss", "gradient_norm"]
        ),
        snakemake.params.scale,
        snakemake.params.level,
    )
    for path in snakemake.output:
        artifacts.write_table(path, table)
