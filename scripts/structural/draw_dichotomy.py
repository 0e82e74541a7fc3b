from position_bias.drawing import style
from position_bias.running import artifacts, runtime
from position_bias.structural import figures_theory

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["schedule", "attention", "depth", "value", "lower", "upper"]
    dichotomy = artifacts.read_table(snakemake.input.dichotomy, columns)
    style.save(figures_theory.dichotomy(dichotomy), *snakemake.output)
