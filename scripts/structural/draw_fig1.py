from position_bias.drawing import style
from position_bias.running import artifacts, runtime
from position_bias.structural import figures

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["model", "checkpoint", "dataset", "estimator", "variant", "position", "value", "low", "high"]
    profiles = artifacts.read_tables(snakemake.input.profiles, columns)
    style.save(figures.fig1(profiles), *snakemake.output)
