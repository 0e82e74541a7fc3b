from position_bias import runtime
from position_bias.emergence import gaps
from position_bias.plots import layernorm_networks, style

with runtime.job(snakemake.log[0]), style.figure_style():
    tests = gaps.read(snakemake.input.curves)
    alike = gaps.curves(tests[tests["encoding"] == "none"])
    style.save(layernorm_networks.emergence(alike, snakemake.params.level), *snakemake.output)
