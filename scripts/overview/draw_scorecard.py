from position_bias.drawing import scorecard, style
from position_bias.running import artifacts, runtime
from position_bias.verdicts.scorecard import SCORECARD_COLUMNS

with runtime.job(snakemake.log[0]), style.figure_style():
    table = artifacts.read_table(snakemake.input.scorecard, SCORECARD_COLUMNS, undefined=True)
    style.save(scorecard.scorecard(table), *snakemake.output)
