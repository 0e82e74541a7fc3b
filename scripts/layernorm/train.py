from position_bias.layernorm import training
from position_bias.workflow import resumable
from position_card.core import artifacts

norm, rate, numbers = snakemake.wildcards.norm, snakemake.params.learning_rate, snakemake.params.trained
with resumable.job(snakemake, "layernorm", norm) as place:
    table = training.train(norm, training.DecoderSetting.from_numbers(numbers), rate, range(numbers["seeds"]), place)
    training.require_finite(table, norm, rate)
    artifacts.write_table(snakemake.output[0], table.assign(**place.made_with))
