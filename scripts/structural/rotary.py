from position_bias.language_models import measured
from position_bias.running import artifacts, runtime
from position_bias.structural import rotary, tables

with runtime.job(snakemake.log[0]):
    ((_, found),) = measured.read(snakemake.input[0])[0].items()
    checkpoint = snakemake.wildcards.checkpoint
    seed = int(tables.training(checkpoint).removeprefix("seed"))
    labels = {"model": snakemake.wildcards.model, "seed": seed, "step": tables.step(checkpoint)}
    artifacts.write_table(snakemake.output[0], rotary.described(found).assign(**labels))
