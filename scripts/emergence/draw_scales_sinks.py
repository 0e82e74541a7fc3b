from position_bias.drawing import style
from position_bias.emergence import evidence, figures_scales
from position_bias.running import runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    params = snakemake.params
    short = evidence.of_run(snakemake.input.curves, snakemake.input.sinks, params.threshold)
    long = evidence.read_long_runs(params.evidence, params.threshold)["paper"]
    style.save(figures_scales.sinks(figures_scales.at_both(short.sinks, long.sinks), params.level), *snakemake.output)
