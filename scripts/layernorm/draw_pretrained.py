import pandas as pd

from position_bias.drawing import style
from position_bias.layernorm import figures_networks, pretrained
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    recency, grams = [], {}
    for path in snakemake.input.grams:
        labels, found = artifacts.read_labels(path), artifacts.read_tensors(path, "recency", "mean")
        recency.append(pretrained.recency_table(labels, found["recency"]))
        grams[labels["model"]] = found["mean"]  # of the last seed and step
    figure = figures_networks.pretrained(pd.concat(recency, ignore_index=True), grams, snakemake.params.level)
    style.save(figure, *snakemake.output)
