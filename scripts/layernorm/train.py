from position_bias.layernorm import networks, training
from position_bias.running import artifacts, resumable
from position_bias.small_networks.ensemble import Recipe
from position_bias.small_networks.size import Size

norm, rate, numbers = snakemake.wildcards.norm, snakemake.params.learning_rate, snakemake.params.trained
with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, "layernorm", norm) as place:
    found = training.train(
        norm,
        networks.Data(**numbers["data"]),
        Size(**numbers["size"]),
        range(numbers["seeds"]),
        Recipe(numbers["iterations"], rate, numbers["weight_decay"], warmup=numbers["warmup"], decay=True),
        place,
        batch=numbers["batch"],
        held_out=numbers["held_out"],
    )
    training.require_finite(found, norm, rate)
    artifacts.write_table(snakemake.output[0], found.assign(**place.made_with))
