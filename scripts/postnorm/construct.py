import torch

from position_bias.postnorm import construction
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    params, numbers = snakemake.params, snakemake.params.numbers
    found = construction.distances(numbers["vocabulary"], numbers["strength"], params.sequences, params.seed)
    artifacts.write_table(snakemake.output[0], found)
