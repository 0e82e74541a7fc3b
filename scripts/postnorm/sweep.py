import pandas as pd

from position_bias.postnorm import experiments, schemes, tasks
from position_bias.postnorm.training import Setting
from position_bias.running import artifacts, resumable
from position_bias.small_networks.ensemble import seeds_of_sweep
from position_bias.small_networks.size import Size

with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, "postnorm", "sweep", narrow=True) as place:
    sweep, parts, common = snakemake.params.sweep, snakemake.params.parts, snakemake.params.common
    found = []
    for name in [*parts[schemes.MINIMAL]["lengths"], *sweep["languages"]]:
        task, part = tasks.task(name), parts[schemes.part_of(name)]
        length = part["lengths"][name]
        tried = experiments.sweep(
            task,
            Size(**part["size"]) if "size" in part else experiments.minimal(task.inputs),
            list(part["learning_rate"].get(name, part["learning_rate"])),
            Setting(length, part["batch"], length, common["test_sequences"]),
            [
                experiments.schedule(round(share * part["iterations"]), common["warmup"], common["weight_decay"])
                for share in sweep["iterations"]
            ],
            sweep["learning_rates"],
            seeds_of_sweep(sweep["seeds"]),
            place,
        )
        found.append(tried)
    table = pd.concat(found, ignore_index=True).assign(scale=snakemake.params.scale, **place.made_with)
    artifacts.write_table(snakemake.output[0], table)
