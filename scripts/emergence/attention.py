import torch

from position_bias.emergence import sinks, training
from position_bias.emergence.task import for_vocabulary
from position_card.core import artifacts, runtime

with runtime.job(snakemake.log[0]):
    params, wildcards = snakemake.params, snakemake.wildcards
    labels = artifacts.read_labels(snakemake.input.weights)
    member_labels = labels.pop("members")
    weights = artifacts.read_tensors(snakemake.input.weights)
    table, mean, example = sinks.measure_sinks(
        for_vocabulary(wildcards.vocabulary, params.task),
        training.members_from_labels(member_labels),
        {name: torch.from_numpy(value) for name, value in weights.items()},
        labels["depth"],
        labels["residual"],
        params.sequences,
        params.thresholds,
    )
    artifacts.write_table(snakemake.output.sinks, table.assign(**labels))
    artifacts.write_tensors(snakemake.output.maps, {"mean": mean, "example": example}, **labels, members=member_labels)
