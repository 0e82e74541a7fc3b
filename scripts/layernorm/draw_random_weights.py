from position_bias import artifacts, runtime
from position_bias.plots import layernorm_networks, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["norm", "residual", "seed", "layer", "head", "quantity", "value"]
    table = artifacts.read_table(snakemake.input.table, columns)
    style.save(layernorm_networks.random_weights(table, snakemake.params.level), *snakemake.output)
