import shutil
from pathlib import Path

import pandas as pd
import torch

from position_bias.postnorm import experiments, tasks
from position_bias.postnorm.training import Setting
from position_bias.running import artifacts, devices, provenance, runtime
from position_bias.small_networks.averaging import Averaging

with (
    runtime.job(snakemake.log[0]),
    devices.computing(snakemake.config["device"], snakemake.threads, narrow=True) as device,
):
    numbers, common = snakemake.params.numbers, snakemake.params.common
    folder = Path("checkpoints/postnorm/averaging")
    found = []
    for vocabulary in numbers["vocabularies"]:
        task, length = tasks.SetComplement(vocabulary), vocabulary // 4
        tests = experiments.by_average(
            task,
            Setting(length, numbers["batch"], task.longest, common["test_sequences"]),
            experiments.schedule(numbers["iterations"], common["warmup"], common["weight_decay"]),
            numbers["learning_rate"],
            Averaging(numbers["kappa"]),
            numbers["etas"],
            range(numbers["seeds"]),
            experiments.Place(folder, snakemake.config["postnorm"]["checkpoint_every"], device),
        )
        found.append(tests.assign(trained=length))
    made_with = {"device": device, "torch": torch.__version__}
    artifacts.write_table(snakemake.output.tests, pd.concat(found, ignore_index=True).assign(**made_with))
    run = {
        "task": "averaging",
        "vocabularies": " ".join(map(str, numbers["vocabularies"])),
        "seeds": numbers["seeds"],
        "iterations": numbers["iterations"],
        "batch": numbers["batch"],
        "learning_rate": numbers["learning_rate"],
        "kappa": numbers["kappa"],
        **provenance.training(Path(snakemake.scriptdir).parents[1], folder, device),
    }
    artifacts.write_table(snakemake.output.run, pd.DataFrame([run]))
    shutil.rmtree(folder)
