from position_bias import artifacts, runtime
from position_bias.claims import emergence
from position_bias.emergence import gaps

with runtime.job(snakemake.log[0]):
    tests = gaps.read(snakemake.input.curves)
    curves = gaps.curves(tests)
    late = gaps.settled(curves, snakemake.params.settled)
    table = emergence.gap_table(gaps.trained(curves), late, snakemake.params.level)
    for path in snakemake.output:
        artifacts.write_table(path, table)
