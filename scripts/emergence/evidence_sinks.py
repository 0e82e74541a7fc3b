from position_bias import artifacts, runtime
from position_bias.emergence import gaps

with runtime.job(snakemake.log[0]):
    columns = [*gaps.CONFIGURATION, "seed", "state", "tau", "token", "value"]
    sinks = artifacts.read_tables(snakemake.input.sinks, columns)[columns]
    artifacts.write_table(snakemake.output[0], sinks.round({"value": 5}).assign(scale=snakemake.params.scale))
