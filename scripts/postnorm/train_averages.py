from pathlib import Path

import pandas as pd

from position_bias.postnorm import experiments, tasks
from position_bias.postnorm.training import Setting
from position_bias.running import artifacts, provenance, resumable
from position_bias.small_networks.averaging import Averaging

with resumable.job(
    snakemake.log[0], snakemake.config, snakemake.threads, "postnorm", "averaging", narrow=True
) as place:
    numbers, common = snakemake.params.numbers, snakemake.params.common
    found = []
    for vocabulary in numbers["vocabularies"]:
        task, length = tasks.SetComplement(vocabulary), round(numbers["trained_share"] * vocabulary)
        tests = experiments.by_average(
            task,
            numbers["scheme"],
            Setting(length, numbers["batch"], task.longest, common["test_sequences"]),
            experiments.schedule(numbers["iterations"], common["warmup"], common["weight_decay"]),
            numbers["learning_rate"],
            Averaging(numbers["kappa"]),
            numbers["etas"],
            range(numbers["seeds"]),
            place,
        )
        found.append(tests.assign(trained=length))
    artifacts.write_table(snakemake.output.tests, pd.concat(found, ignore_index=True).assign(**place.made_with))
    run = {
        "task": "averaging",
        "vocabularies": " ".join(map(str, numbers["vocabularies"])),
        **{
            name: numbers[name]
            for name in ("trained_share", "scheme", "seeds", "iterations", "batch", "learning_rate", "kappa")
        },
        **provenance.training(Path(snakemake.scriptdir).parents[1], place.folder, place.device),
    }
    artifacts.write_table(snakemake.output.run, pd.DataFrame([run]))
