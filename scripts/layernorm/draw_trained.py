from position_bias import artifacts, runtime
from position_bias.plots import layernorm_networks, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["norm", "seed", "state", "layer", "head", "quantity", "value"]
    table = artifacts.read_tables(snakemake.input.tables, columns)
    style.save(layernorm_networks.trained(table, snakemake.params.level), *snakemake.output)
