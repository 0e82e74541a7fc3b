from position_bias import artifacts, runtime
from position_bias.emergence import gaps
from position_bias.plots import layernorm_networks, style

with runtime.job(snakemake.log[0]), style.figure_style():
    tests = artifacts.read_tables(snakemake.input.curves, [*gaps.CONFIGURATION, *gaps.COLUMNS])
    alike = gaps.curves(tests[tests["encoding"] == "none"])
    style.save(layernorm_networks.emergence(alike, snakemake.params.level), *snakemake.output)
