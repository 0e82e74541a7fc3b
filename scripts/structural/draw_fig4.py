from collections import defaultdict

from position_bias.drawing import style
from position_bias.running import artifacts, runtime
from position_bias.structural import figures

with runtime.job(snakemake.log[0]), style.figure_style():
    panels = defaultdict(lambda: defaultdict(list))
    for path in snakemake.input.mixing:
        labels = artifacts.read_labels(path)
        panels[labels["dataset"]][labels["model"]].append(artifacts.read_tensors(path))
    style.save(figures.fig4(panels), *snakemake.output)
