from position_bias.drawing import style
from position_bias.emergence import figures_sinks
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    (source,) = snakemake.input.maps
    members = artifacts.read_labels(source)["members"]
    shown = next(index for index, member in enumerate(members) if member["encoding"] == "none")
    maps = artifacts.read_tensors(source, "mean", "example")
    style.save(figures_sinks.attention_maps(maps["mean"][shown], maps["example"][shown]), *snakemake.output)
