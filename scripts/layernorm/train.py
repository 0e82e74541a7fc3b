import shutil
from pathlib import Path

import torch

from position_bias.layernorm import training
from position_bias.running import artifacts, devices, runtime
from position_bias.small_networks.ensemble import Recipe

with runtime.job(snakemake.log[0]), devices.computing(snakemake.config["device"], snakemake.threads) as device:
    params, norm = snakemake.params, snakemake.wildcards.norm
    folder = Path("checkpoints/layernorm", norm)
    found = training.train(
        norm,
        training.Data(**params.data),
        training.Size(**params.size),
        range(params.seeds),
        Recipe(params.iterations, params.learning_rate, params.weight_decay, warmup=params.warmup, decay=True),
        batch=params.batch,
        held_out=params.held_out,
        checkpoint_every=snakemake.config["layernorm"]["trained"]["checkpoint_every"],
        folder=folder,
        device=device,
    )
    training.require_finite(found, norm, params.learning_rate)
    artifacts.write_table(snakemake.output[0], found.assign(device=device, torch=torch.__version__))
    shutil.rmtree(folder)
