from position_bias.drawing import style
from position_bias.layernorm import figures_networks
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["norm", "residual", "seed", "layer", "head", "quantity", "value"]
    table = artifacts.read_table(snakemake.input.table, columns)
    style.save(figures_networks.random_weights(table, snakemake.params.level), *snakemake.output)
