from position_bias.drawing import style
from position_bias.emergence import gaps
from position_bias.layernorm import figures_networks
from position_bias.running import runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    tests = gaps.read(snakemake.input.curves)
    alike = gaps.curves(tests[tests["encoding"] == "none"])
    style.save(figures_networks.emergence(alike, snakemake.params.level), *snakemake.output)
