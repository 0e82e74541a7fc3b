from position_bias.postnorm import experiments, tasks
from position_bias.postnorm.training import Setting
from position_bias.running import artifacts, resumable
from position_bias.small_networks.size import Size

with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, "postnorm", "depth", narrow=True) as place:
    depth, numbers, common = snakemake.params.depth, snakemake.params.languages, snakemake.params.common
    length = depth["length"]
    found = experiments.by_depth(
        tasks.Nested(depth["kinds"], depth["trained"], length),
        Size(**numbers["size"]),
        Setting(length, numbers["batch"], length, common["test_sequences"]),
        experiments.schedule(numbers["iterations"], common["warmup"], common["weight_decay"]),
        numbers["learning_rate"],
        range(numbers["seeds"]),
        place,
    )
    artifacts.write_table(snakemake.output[0], found.assign(**place.made_with))
