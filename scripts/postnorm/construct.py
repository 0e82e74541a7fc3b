import torch

from position_bias.postnorm import construction
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    params = snakemake.params
    found = construction.distances(params.vocabulary, params.strength, params.sequences, params.seed)
    artifacts.write_table(snakemake.output[0], found)
