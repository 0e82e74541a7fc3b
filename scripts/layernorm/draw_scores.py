from position_bias import artifacts, runtime
from position_bias.plots import layernorm, style

with runtime.job(snakemake.log[0]), style.figure_style():
    maps = artifacts.read_tensors(snakemake.input.scores)
    style.save(layernorm.scores(maps, snakemake.params.alphas), *snakemake.output)
