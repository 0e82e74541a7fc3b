from position_bias.layernorm import training
from position_bias.small_networks.settings import seeds_of_sweep
from position_bias.workflow import resumable
from position_card.core import artifacts

with resumable.job(snakemake, "layernorm", "sweep") as place:
    setting, sweep = training.DecoderSetting.from_numbers(snakemake.params.trained), snakemake.params.sweep
    losses = training.sweep(setting, sweep["learning_rates"], seeds_of_sweep(sweep["seeds"]), place)
    artifacts.write_table(snakemake.output[0], losses.assign(scale=snakemake.params.scale, **place.made_with))
