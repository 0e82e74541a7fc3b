from position_bias.drawing import style
from position_bias.emergence import figures_sinks
from position_bias.running import runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    style.save(figures_sinks.masks_and_graphs(), *snakemake.output)
