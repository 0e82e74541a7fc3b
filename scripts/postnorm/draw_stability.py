from position_bias.drawing import style
from position_bias.postnorm import figures_training, tables
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    table = artifacts.read_table(snakemake.input.table, tables.STABILITY)
    style.save(figures_training.stability(table), *snakemake.output)
