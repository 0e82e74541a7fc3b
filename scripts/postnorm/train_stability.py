import shutil
from dataclasses import replace
from pathlib import Path

import torch

from position_bias.postnorm import experiments, tasks
from position_bias.postnorm.training import Setting, Size
from position_bias.running import artifacts, devices, runtime

with (
    runtime.job(snakemake.log[0]),
    devices.computing(snakemake.config["device"], snakemake.threads, narrow=True) as device,
):
    params, numbers = snakemake.params, snakemake.params.numbers
    name, length = next(iter(params.lengths.items()))
    task = tasks.task(name)
    folder = Path("checkpoints/postnorm/stability")
    curves = experiments.stability(
        task,
        numbers["schemes"],
        [experiments.minimal(task.inputs), Size(**numbers["deep"])],
        numbers["learning_rates"],
        Setting(length, params.batch, length, params.common["test_sequences"]),
        replace(experiments.schedule(numbers["iterations"], 0.0, params.common["weight_decay"]), decay=False),
        range(numbers["seeds"]),
        experiments.Place(folder, snakemake.config["postnorm"]["checkpoint_every"], device),
    )
    artifacts.write_table(snakemake.output[0], curves.assign(device=device, torch=torch.__version__))
    shutil.rmtree(folder)
