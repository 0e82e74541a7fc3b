from position_bias.drawing import style
from position_bias.postnorm import figures_training
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["task", "scheme", "seed", "length", "quantity", "value", "trained"]
    tests = artifacts.read_tables(snakemake.input.tests, columns)
    style.save(figures_training.formal_languages(tests, snakemake.params.level), *snakemake.output)
