from position_bias.drawing import style
from position_bias.emergence import figures_theory
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    curves = {
        "convergence": ["mask", "layers", "value", "bound", "low", "high"],
        "decay": ["depth", "distance", "value", "peak", "critical"],
        "rope": ["depth", "distance", "value", "peak", "critical", "printed"],
        "peaks": ["decay", "depth", "peak", "critical"],
    }
    tables = {name: artifacts.read_table(snakemake.input[name], columns) for name, columns in curves.items()}
    style.save(figures_theory.theorems(**tables), *snakemake.output)
