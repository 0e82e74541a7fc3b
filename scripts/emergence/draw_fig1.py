from position_bias import runtime
from position_bias.plots import emergence_sinks, style

with runtime.job(snakemake.log[0]), style.figure_style():
    style.save(emergence_sinks.masks_and_graphs(), *snakemake.output)
