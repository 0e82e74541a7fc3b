from position_bias.drawing import scorecard, style
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    table = artifacts.read_table(snakemake.input.scorecard, ["paper", "item", "statement", "whose", "verdict"])
    style.save(scorecard.scorecard(table), *snakemake.output)
