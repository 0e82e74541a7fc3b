from pathlib import Path

import pandas as pd

from position_bias.postnorm import experiments, schemes, tasks
from position_bias.postnorm.training import Setting
from position_bias.running import artifacts, provenance, resumable
from position_bias.small_networks.size import Size

with resumable.job(
    snakemake.log[0], snakemake.config, snakemake.threads, "postnorm", snakemake.wildcards.task, narrow=True
) as place:
    params, numbers = snakemake.params, snakemake.params.numbers
    task = tasks.task(snakemake.wildcards.task)
    part = schemes.part_of(task.name)
    of_task = f".{task.name}" if part == schemes.MINIMAL else ""
    tests, history = experiments.by_scheme(
        task,
        Size(**numbers["size"]) if "size" in numbers else experiments.minimal(task.inputs),
        Setting(
            length=params.length,
            batch=numbers["batch"],
            longest=task.longest or params.length * numbers["furthest"],
            sequences=params.common["test_sequences"],
        ),
        experiments.schedule(numbers["iterations"], params.common["warmup"], params.common["weight_decay"]),
        numbers["learning_rate"],
        range(numbers["seeds"]),
        place,
        key=f"postnorm.{part}.learning_rate{of_task}",
    )
    made_with = {"trained": params.length, **place.made_with}
    artifacts.write_table(snakemake.output.tests, tests.assign(**made_with))
    artifacts.write_table(snakemake.output.history, history.assign(**made_with))
    run = {
        "task": task.name,
        "schemes": " ".join(numbers["learning_rate"]),
        "seeds": numbers["seeds"],
        "iterations": numbers["iterations"],
        "batch": numbers["batch"],
        "learning_rates": " ".join(f"{rate:g}" for rate in numbers["learning_rate"].values()),
        **provenance.training(Path(snakemake.scriptdir).parents[1], place.folder, place.device),
    }
    artifacts.write_table(snakemake.output.run, pd.DataFrame([run]))
