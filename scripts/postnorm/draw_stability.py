from position_bias.drawing import style
from position_bias.postnorm import figures_training
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["scheme", "layers", "learning_rate", "seed", "iteration", "loss", "gradient_norm"]
    table = artifacts.read_table(snakemake.input.table, columns)
    style.save(figures_training.stability(table), *snakemake.output)
