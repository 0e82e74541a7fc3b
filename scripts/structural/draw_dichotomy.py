from position_bias import artifacts, runtime
from position_bias.plots import structural_theory, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["schedule", "attention", "depth", "value", "lower", "upper"]
    dichotomy = artifacts.read_table(snakemake.input.dichotomy, columns)
    style.save(structural_theory.dichotomy(dichotomy), *snakemake.output)
