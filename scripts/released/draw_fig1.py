from position_bias import artifacts, runtime
from position_bias.plots import structural_released, style
from position_bias.released import written

with runtime.job(snakemake.log[0]), style.figure_style():
    profiles = written.read_profiles(snakemake.input.profiles)
    columns = ["model", "dataset", "slopes", "content", *(f"mean position {x}" for x in "abc")]
    table = artifacts.read_table(snakemake.input.table, [*columns, *(f"printed W({x}, d)" for x in "abc")])
    style.save(structural_released.fig1(profiles, table), *snakemake.output)
