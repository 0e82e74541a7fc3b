import torch

from position_bias import artifacts, runtime
from position_bias.claims import layernorm_theory

with runtime.job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    params = snakemake.params
    numbers = {name: params.numbers[name] for name in ("tokens", "width", "sequences", "limit_tokens", "seed")}
    artifacts.write_table(snakemake.output[0], layernorm_theory.table(params.scale, params.level, **numbers))
