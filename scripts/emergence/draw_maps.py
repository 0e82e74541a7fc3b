from position_bias.drawing import style
from position_bias.emergence import figures, figures_sinks
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    (source,) = snakemake.input.maps
    labels = artifacts.read_labels(source)
    shown = next(index for index, member in enumerate(labels["members"]) if member["encoding"] == "none")
    maps = artifacts.read_tensors(source, "mean", "example")
    omega = "training" if labels["vocabulary"] == "fixed" else "none"  # the first of the task's
    title = figures.networks(labels["vocabulary"], omega, labels["residual"])
    figure = figures_sinks.attention_maps(maps["mean"][shown], maps["example"][shown], title)
    style.save(figure, *snakemake.output)
