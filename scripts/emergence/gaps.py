from position_bias.emergence import checks, gaps
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    tests = gaps.read(snakemake.input.curves)
    curves = gaps.curves(tests)
    late = gaps.settled(curves, snakemake.params.settled)
    table = checks.gap_table(gaps.trained(curves), late, snakemake.params.level)
    for path in snakemake.output:
        artifacts.write_table(path, table)
