from position_bias.drawing import style
from position_bias.released import figures
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    labels = ["model", "variant", "slopes", "content", "n"]
    samples = artifacts.read_table(snakemake.input.samples, [*labels, "distance", "value"])
    sums = artifacts.read_table(snakemake.input.sums, [*labels, "statistic", "value"])
    style.save(figures.lengths(samples, sums), *snakemake.output)
