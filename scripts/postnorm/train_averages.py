from pathlib import Path

import pandas as pd

from position_bias.postnorm import experiments, tasks
from position_bias.postnorm.training import Setting
from position_bias.running import artifacts, provenance, resumable
from position_bias.small_networks.averaging import Averaging
from position_bias.small_networks.size import Size

with resumable.job(
    snakemake.log[0], snakemake.config, snakemake.threads, "postnorm", "averaging", narrow=True
) as place:
    numbers, common = snakemake.params.numbers, snakemake.params.common
    languages, found = snakemake.params.languages, []
    complements = [tasks.SetComplement(vocabulary) for vocabulary in numbers["vocabularies"]]
    trained = [
        *(
            (task, experiments.minimal(task.inputs), round(numbers["trained_share"] * task.inputs))
            for task in complements
        ),
        *(
            (tasks.task(name), Size(**languages["size"]), languages["lengths"][name])
            for name in numbers["deterministic"]
        ),
    ]
    for task, size, length in trained:
        tests = experiments.by_average(
            task,
            size,
            numbers["scheme"],
            Setting(length, numbers["batch"], task.longest or length, common["test_sequences"]),
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
        "deterministic": " ".join(numbers["deterministic"]),
        **{
            name: numbers[name]
            for name in ("trained_share", "scheme", "seeds", "iterations", "batch", "learning_rate", "kappa")
        },
        **provenance.training(Path(snakemake.scriptdir).parents[1], place.folder, place.device),
    }
    artifacts.write_table(snakemake.output.run, pd.DataFrame([run]))
