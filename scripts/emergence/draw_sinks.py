from position_bias import artifacts, runtime
from position_bias.emergence import gaps
from position_bias.plots import emergence_sinks, style

with runtime.job(snakemake.log[0]), style.figure_style():
    (source,) = snakemake.input.sinks
    keys = [*gaps.CONFIGURATION, "state", "tau", "token"]
    sinks = gaps.of_training_omega(artifacts.read_table(source, [*keys, "seed", "value"]))
    summary = gaps.summary(sinks[sinks["encoding"] == "none"], keys, "value", snakemake.params.level)
    masks = list(summary["mask"].unique())
    style.save(emergence_sinks.sinks(summary, masks, snakemake.params.threshold), *snakemake.output)
