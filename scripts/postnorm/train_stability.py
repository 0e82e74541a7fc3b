from dataclasses import replace

from position_bias.postnorm import experiments, tasks
from position_bias.postnorm.training import Setting
from position_bias.running import artifacts, resumable
from position_bias.small_networks.size import Size

with resumable.job(
    snakemake.log[0], snakemake.config, snakemake.threads, "postnorm", "stability", narrow=True
) as place:
    params, numbers = snakemake.params, snakemake.params.numbers
    name, length = next(iter(params.lengths.items()))
    task = tasks.task(name)
    curves = experiments.stability(
        task,
        numbers["schemes"],
        [experiments.minimal(task.inputs), Size(**numbers["deep"])],
        numbers["learning_rates"],
        Setting(length, params.batch, length, params.common["test_sequences"]),
        replace(experiments.schedule(numbers["iterations"], 0.0, params.common["weight_decay"]), decay=False),
        range(numbers["seeds"]),
        place,
    )
    artifacts.write_table(snakemake.output[0], curves.assign(**place.made_with))
