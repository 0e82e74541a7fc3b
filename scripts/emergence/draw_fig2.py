from position_bias.drawing import style
from position_bias.emergence import figures, gaps
from position_bias.running import runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    tests = gaps.of_training_omega(gaps.read(snakemake.input.curves))
    by_seed = gaps.final_gaps(gaps.curves(tests))
    summary = gaps.summary(by_seed, [*gaps.CONFIGURATION, "pair"], "gap", snakemake.params.level)
    without, with_residual = (summary[summary["residual"] == residual] for residual in (False, True))
    style.save(figures.depth_overview(without, with_residual, by_seed), *snakemake.output)
