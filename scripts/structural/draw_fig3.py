from position_bias import artifacts, runtime
from position_bias.plots import structural, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["model", "checkpoint", "dataset", "estimator", "variant", "position", "value", "low", "high"]
    profiles = artifacts.read_tables(snakemake.input.profiles, columns)
    style.save(structural.fig3(profiles), *snakemake.output)
