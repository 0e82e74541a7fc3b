from position_bias import artifacts, runtime
from position_bias.plots import scorecard, style

with runtime.job(snakemake.log[0]), style.figure_style():
    table = artifacts.read_table(snakemake.input.scorecard, ["paper", "item", "statement", "whose", "verdict"])
    style.save(scorecard.scorecard(table), *snakemake.output)
