from position_bias.drawing import style
from position_bias.released import figures, written
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    profiles = written.read_profiles(snakemake.input.profiles)
    columns = ["model", "dataset", "slopes", "content", *(f"mean position {x}" for x in "abc")]
    table = artifacts.read_table(snakemake.input.table, [*columns, *(f"printed W({x}, d)" for x in "abc")])
    style.save(figures.fig1(profiles, table), *snakemake.output)
