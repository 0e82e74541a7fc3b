from position_bias.drawing import style
from position_bias.layernorm import figures
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["mask", "profile", "layer", "predicted", "measured", "low", "high"]
    style.save(figures.moments(artifacts.read_table(snakemake.input.table, columns)), *snakemake.output)
