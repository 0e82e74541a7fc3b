from position_bias import artifacts, runtime
from position_bias.plots import layernorm, style

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["norm", "residual", "anisotropy", "position", "predicted", "measured", "low", "high"]
    table = artifacts.read_table(snakemake.input.table, columns)
    style.save(layernorm.closed_form(table), *snakemake.output)
