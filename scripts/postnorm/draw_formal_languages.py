from position_bias.drawing import style
from position_bias.postnorm import figures_training, tables
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    tests = artifacts.read_tables(snakemake.input.tests, tables.TESTS)
    style.save(figures_training.formal_languages(tests, snakemake.params.level), *snakemake.output)
