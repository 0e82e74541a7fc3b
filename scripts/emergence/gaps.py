from position_bias.emergence import checks, gaps
from position_bias.running import artifacts, runtime
from position_bias.verdicts import predictions

with runtime.job(snakemake.log[0]):
    tests = gaps.read(snakemake.input.curves)
    curves = gaps.curves(tests)
    late = gaps.settled(curves, snakemake.params.settled)
    predicted = predictions.predictions(snakemake.input.predictions, "emergence")
    table = checks.gap_table(gaps.final_gaps(curves), late, predicted, snakemake.params.level)
    for path in snakemake.output:
        artifacts.write_table(path, table)
