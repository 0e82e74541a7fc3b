from position_bias.language_models import measured
from position_bias.running import artifacts, runtime
from position_bias.structural import rotary

with runtime.job(snakemake.log[0]):
    ((_, found),) = measured.read(snakemake.input[0])[0].items()
    seed, step = (int("".join(filter(str.isdigit, part))) for part in snakemake.wildcards.checkpoint.split("/"))
    labels = {"model": snakemake.wildcards.model, "seed": seed, "step": step}
    artifacts.write_table(snakemake.output[0], rotary.described(found).assign(**labels))
