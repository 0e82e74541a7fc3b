from position_bias import artifacts, runtime
from position_bias.plots import structural_released, style

with runtime.job(snakemake.log[0]), style.figure_style():
    labels = ["model", "variant", "slopes", "content", "n"]
    samples = artifacts.read_table(snakemake.input.samples, [*labels, "distance", "value"])
    sums = artifacts.read_table(snakemake.input.sums, [*labels, "statistic", "value"])
    style.save(structural_released.lengths(samples, sums), *snakemake.output)
