from position_bias import artifacts, runtime
from position_bias.emergence import gaps
from position_bias.plots import emergence, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = [*gaps.CONFIGURATION, *gaps.COLUMNS]
    tests = artifacts.read_tables(snakemake.input.curves, columns)
    by_seed = gaps.trained(gaps.curves(tests))
    summary = gaps.summary(by_seed, [*gaps.CONFIGURATION, "pair"], "gap", snakemake.params.level)
    style.save(emergence.trained_with_bias(summary, by_seed), *snakemake.output)
