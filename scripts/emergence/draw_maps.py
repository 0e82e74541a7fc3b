from position_bias import artifacts, runtime
from position_bias.plots import emergence_sinks, style

with runtime.job(snakemake.log[0]), style.figure_style():
    (source,) = snakemake.input.maps
    members = artifacts.read_labels(source)["members"]
    shown = next(index for index, member in enumerate(members) if member["encoding"] == "none")
    maps = artifacts.read_tensors(source, "mean", "example")
    style.save(emergence_sinks.attention_maps(maps["mean"][shown], maps["example"][shown]), *snakemake.output)
