from position_bias.layernorm import training
from position_bias.workflow import resumable
from position_card.core import artifacts

norm, rate, numbers = snakemake.wildcards.norm, snakemake.params.learning_rate, snakemake.params.trained
with resumable.job(snakemake, "layernorm", norm) as place:
    found = training.train(norm, training.DecoderSetting.of(numbers), rate, range(numbers["seeds"]), place)
    training.require_finite(found, norm, rate)
    artifacts.write_table(snakemake.output[0], found.assign(**place.made_with))
