from position_bias.drawing import style
from position_bias.layernorm import figures_networks
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["norm", "seed", "state", "layer", "head", "quantity", "value"]
    table = artifacts.read_tables(snakemake.input.tables, columns)
    style.save(figures_networks.trained(table, snakemake.params.level), *snakemake.output)
