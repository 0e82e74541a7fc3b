from position_bias import artifacts, runtime
from position_bias.plots import postnorm_training, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["scheme", "layers", "learning_rate", "seed", "iteration", "loss", "gradient_norm"]
    table = artifacts.read_table(snakemake.input.table, columns)
    style.save(postnorm_training.stability(table), *snakemake.output)
