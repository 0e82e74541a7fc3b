from position_bias.drawing import style
from position_bias.emergence import figures_sinks, gaps
from position_bias.running import runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    keys = [*gaps.CONFIGURATION, "state", "tau", "token"]
    sinks = gaps.of_training_omega(gaps.read_sinks(snakemake.input.sinks))
    summary = gaps.summary(sinks[sinks["encoding"] == "none"], keys, "value", snakemake.params.level)
    masks = list(summary["mask"].unique())
    style.save(figures_sinks.sinks(summary, masks, snakemake.params.threshold), *snakemake.output)
