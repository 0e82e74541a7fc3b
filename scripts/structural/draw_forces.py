from position_bias import artifacts, runtime
from position_bias.plots import structural_theory, style

with runtime.job(snakemake.log[0]), style.figure_style():
    forces = artifacts.read_table(snakemake.input.forces, ["varied", "at", "mask", "value", "shared"])
    style.save(structural_theory.forces(forces), *snakemake.output)
