import torch

from position_bias.layernorm import simulation
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    numbers = snakemake.params.numbers
    shape = simulation.Heads(**{name: numbers[name] for name in ("tokens", "width", "layers", "heads")})
    found = simulation.random_weights(
        shape, numbers["anisotropy"], numbers["residuals"], numbers["sequences"], range(numbers["seeds"])
    )
    artifacts.write_table(snakemake.output[0], found)
