from position_bias import artifacts, runtime
from position_bias.plots import postnorm_training, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["task", "scheme", "seed", "length", "quantity", "value", "trained"]
    tests = artifacts.read_tables(snakemake.input.tests, columns)
    style.save(postnorm_training.formal_languages(tests, snakemake.params.level), *snakemake.output)
