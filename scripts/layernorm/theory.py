import torch

from position_bias.layernorm import checks_theory
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    wanted = ("tokens", "width", "sequences", "limit_tokens", "seed")
    numbers = {name: snakemake.params.numbers[name] for name in wanted}
    artifacts.write_table(snakemake.output[0], checks_theory.table(snakemake.params.level, **numbers))
