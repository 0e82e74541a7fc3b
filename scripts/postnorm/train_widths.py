from position_bias.postnorm import experiments, tasks
from position_bias.postnorm.training import Setting
from position_bias.running import artifacts, resumable

with resumable.job(
    snakemake.log[0], snakemake.config, snakemake.threads, "postnorm", "dimension", narrow=True
) as place:
    numbers, minimal, common = snakemake.params.numbers, snakemake.params.minimal, snakemake.params.common
    task = tasks.SetComplement(numbers["vocabulary"])
    length = snakemake.params.length
    tests = experiments.by_width(
        task,
        numbers["widths"],
        Setting(length, minimal["batch"], task.longest, common["test_sequences"]),
        experiments.schedule(minimal["iterations"], common["warmup"], common["weight_decay"]),
        {scheme: minimal["learning_rate"][scheme] for scheme in numbers["schemes"]},
        range(numbers["seeds"]),
        place,
        key=f"postnorm.set_complement.learning_rate.{task.name}",
    )
    artifacts.write_table(snakemake.output[0], tests.assign(trained=length, **place.made_with))
