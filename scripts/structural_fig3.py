import pandas as pd

from position_bias import artifacts, runtime
from position_bias.plots import structural, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["model", "checkpoint", "dataset", "estimator", "variant", "position", "value", "low", "high"]
    profiles = pd.concat(artifacts.read_table(path, columns) for path in snakemake.input.profiles)
    style.save(structural.fig3(profiles), *snakemake.output)
