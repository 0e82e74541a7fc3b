from position_bias.layernorm import networks, training
from position_bias.running import artifacts, resumable
from position_bias.small_networks.ensemble import Recipe
from position_bias.small_networks.size import Size
from position_bias.small_networks.sweeps import seeds_of_sweep

with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, "layernorm", "sweep") as place:
    trained, sweep = snakemake.params.trained, snakemake.params.sweep
    found = training.sweep(
        networks.Data(**trained["data"]),
        Size(**trained["size"]),
        seeds_of_sweep(sweep["seeds"]),
        Recipe(trained["iterations"], 1.0, trained["weight_decay"], warmup=trained["warmup"], decay=True),
        sweep["learning_rates"],
        place,
        batch=trained["batch"],
        held_out=trained["held_out"],
    )
    artifacts.write_table(snakemake.output[0], found.assign(scale=snakemake.params.scale, **place.made_with))
