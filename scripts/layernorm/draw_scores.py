from position_bias.drawing import style
from position_bias.layernorm import figures
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    maps = artifacts.read_tensors(snakemake.input.scores)
    style.save(figures.scores(maps, snakemake.params.alphas), *snakemake.output)
