from position_bias.drawing import style
from position_bias.retrieval import agreement, figures
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    table = artifacts.read_table(snakemake.input.profiles, agreement.COLUMNS)
    style.save(figures.prior(table, snakemake.params.level), *snakemake.output)
