from collections import defaultdict

from position_bias import artifacts, runtime
from position_bias.plots import structural, style

with runtime.job(snakemake.log[0]), style.figure_style():
    panels = defaultdict(lambda: defaultdict(list))
    for path in snakemake.input.mixing:
        labels = artifacts.read_labels(path)
        panels[labels["dataset"]][labels["model"]].append(artifacts.read_tensors(path))
    style.save(structural.fig4(panels), *snakemake.output)
