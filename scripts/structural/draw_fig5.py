from position_bias.drawing import style
from position_bias.running import artifacts, runtime
from position_bias.structural import figures_content

with runtime.job(snakemake.log[0]), style.figure_style():
    models = {}
    for path in snakemake.input.content:
        labels = artifacts.read_labels(path)
        name = f"{labels['model']}, {labels['checkpoint'].split('/')[0].replace('seed', 'training seed ')}"
        models[name] = artifacts.read_tensors(path, "mean")["mean"]
    style.save(figures_content.fig5(models), *snakemake.output)
