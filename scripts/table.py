from position_bias.workflow import calls
from position_card.core import runtime

with runtime.job(snakemake.log[0]):
    calls.write(calls.make(snakemake), snakemake)
