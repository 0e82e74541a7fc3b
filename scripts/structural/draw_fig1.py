from position_bias.drawing import style
from position_bias.running import artifacts, runtime
from position_bias.structural import figures, tables

with runtime.job(snakemake.log[0]), style.figure_style():
    profiles = artifacts.read_tables(snakemake.input.profiles, tables.PROFILES)
    style.save(figures.fig1(profiles), *snakemake.output)
