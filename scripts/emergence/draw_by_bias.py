from position_bias import runtime
from position_bias.emergence import gaps
from position_bias.plots import emergence, style

with runtime.job(snakemake.log[0]), style.figure_style():
    tests = gaps.of_training_omega(gaps.read(snakemake.input.curves))
    by_seed = gaps.trained(gaps.curves(tests))
    summary = gaps.summary(by_seed, [*gaps.CONFIGURATION, "pair"], "gap", snakemake.params.level)
    style.save(emergence.trained_with_bias(summary, by_seed), *snakemake.output)
