from position_bias.drawing import style
from position_bias.postnorm import figures
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["task", "scheme", "width", "seed", "length", "quantity", "value", "trained"]
    table = artifacts.read_table(snakemake.input.table, columns)
    style.save(figures.dimension(table, snakemake.params.level), *snakemake.output)
