from position_bias.drawing import style
from position_bias.running import artifacts, runtime
from position_bias.structural import figures_theory

with runtime.job(snakemake.log[0]), style.figure_style():
    forces = artifacts.read_table(snakemake.input.forces, ["varied", "at", "mask", "value", "shared"])
    style.save(figures_theory.forces(forces), *snakemake.output)
