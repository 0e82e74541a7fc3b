from position_bias import artifacts, runtime
from position_bias.plots import emergence_theory, style

with runtime.job(snakemake.log[0]), style.figure_style():
    curves = {
        "convergence": ["mask", "layers", "value", "bound", "low", "high"],
        "decay": ["depth", "distance", "value", "peak", "critical"],
        "rope": ["depth", "distance", "value", "peak", "critical", "printed"],
        "peaks": ["decay", "depth", "peak", "critical"],
    }
    tables = {name: artifacts.read_table(snakemake.input[name], columns) for name, columns in curves.items()}
    style.save(emergence_theory.theorems(**tables), *snakemake.output)
