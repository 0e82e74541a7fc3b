from dataclasses import replace

from position_bias.postnorm import experiments, tasks
from position_bias.postnorm.training import Setting
from position_bias.running import artifacts, resumable
from position_bias.small_networks.ensemble import seeds_of_sweep
from position_bias.small_networks.size import Size

with resumable.job(
    snakemake.log[0], snakemake.config, snakemake.threads, "postnorm", "sweep_stability", narrow=True
) as place:
    params, numbers, swept = snakemake.params, snakemake.params.numbers, snakemake.params.sweep
    name, length = next(iter(params.lengths.items()))
    task = tasks.task(name)
    curves = experiments.stability(
        task,
        swept["schemes"],
        [experiments.minimal(task.inputs), Size(**numbers["deep"])],
        swept["learning_rates"],
        Setting(length, params.batch, length, params.common["test_sequences"]),
        replace(experiments.schedule(numbers["iterations"], 0.0, params.common["weight_decay"]), decay=False),
        seeds_of_sweep(swept["seeds"]),
        place,
    )
    table = experiments.settled_losses(curves)
    artifacts.write_table(snakemake.output[0], table.assign(scale=params.scale, **place.made_with))
