import shutil
from pathlib import Path

import torch

from position_bias.layernorm import training
from position_bias.running import artifacts, devices, runtime
from position_bias.small_networks.ensemble import Recipe, seeds_of_sweep

with runtime.job(snakemake.log[0]), devices.computing(snakemake.config["device"], snakemake.threads) as device:
    trained, sweep = snakemake.params.trained, snakemake.params.sweep
    folder = Path("checkpoints/layernorm/sweep")
    found = training.sweep(
        training.Data(**trained["data"]),
        training.Size(**trained["size"]),
        seeds_of_sweep(sweep["seeds"]),
        Recipe(trained["iterations"], 1.0, trained["weight_decay"], warmup=trained["warmup"], decay=True),
        sweep["learning_rates"],
        batch=trained["batch"],
        held_out=trained["held_out"],
        checkpoint_every=trained["checkpoint_every"],
        folder=folder,
        device=device,
    )
    labels = {"scale": snakemake.params.scale, "device": device, "torch": torch.__version__}
    artifacts.write_table(snakemake.output[0], found.assign(**labels))
    shutil.rmtree(folder)
