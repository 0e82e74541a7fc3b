from pathlib import Path

import torch

from position_bias.layernorm import checks_theory
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    torch.set_num_threads(snakemake.threads)
    params = snakemake.params
    numbers = {name: params.numbers[name] for name in ("tokens", "width", "sequences", "limit_tokens", "seed")}
    numbers["predicted"] = Path(snakemake.input.predicted)
    artifacts.write_table(snakemake.output[0], checks_theory.table(params.scale, params.level, **numbers))
