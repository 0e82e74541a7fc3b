from position_bias.emergence import checks, gaps
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    tests = gaps.of_training_omega(gaps.read(snakemake.input.curves))
    of_sinks = [*gaps.CONFIGURATION, "seed", "state", "tau", "token", "value"]
    sinks = artifacts.read_tables(snakemake.input.sinks, of_sinks)
    trained = checks.Trained(
        gaps=gaps.trained(gaps.curves(tests)),
        accuracy=gaps.by_position(tests),
        sinks=gaps.of_training_omega(sinks[sinks["tau"] == snakemake.params.threshold]),
    )
    table = checks.checks(trained, snakemake.params.scale, snakemake.params.level)
    for path in snakemake.output:
        artifacts.write_table(path, table)
