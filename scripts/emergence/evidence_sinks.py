from position_bias.emergence import gaps
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    sinks = gaps.read_sinks(snakemake.input.sinks)
    artifacts.write_table(snakemake.output[0], sinks.round({"value": 5}).assign(scale=snakemake.params.scale))
