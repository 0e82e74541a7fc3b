from position_bias.postnorm import checks, tables
from position_bias.running import artifacts, runtime
from position_bias.verdicts import predictions, verdict

with runtime.job(snakemake.log[0]):
    inputs = snakemake.input
    table = checks.checks(
        artifacts.read_tables(inputs.tests, tables.TESTS),
        artifacts.read_table(inputs.construction, tables.CONSTRUCTION),
        artifacts.read_table(inputs.dimension, tables.DIMENSION),
        artifacts.read_table(inputs.depth, tables.DEPTH),
        artifacts.read_table(inputs.averaging, tables.AVERAGING),
        artifacts.read_table(inputs.stability, tables.STABILITY),
        predictions.predictions(inputs.predictions, "postnorm"),
        snakemake.params.scale,
        snakemake.params.level,
    )
    artifacts.write_table(snakemake.output.csv, table)
    artifacts.write_table(snakemake.output.md, verdict.readable(table))
