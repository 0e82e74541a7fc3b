from position_bias import artifacts, runtime
from position_bias.plots import postnorm, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["task", "scheme", "width", "seed", "length", "quantity", "value", "trained"]
    table = artifacts.read_table(snakemake.input.table, columns)
    style.save(postnorm.dimension(table, snakemake.params.level), *snakemake.output)
