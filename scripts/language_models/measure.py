import transformers

from position_bias.workflow import resumable
from position_card.core import artifacts
from position_card.measures import cost
from position_card.measures.measure import Quantities, measure_decoder
from position_card.measures.passes import Resumption
from position_card.models import hub, opening
from position_card.rollout import measurement

wildcards, params = snakemake.wildcards, snakemake.params
gpus = snakemake.config["hub_models"].get(wildcards.model, {"gpus": 1})["gpus"]  # no parameter: it decides no number
path = ("measure", wildcards.model, wildcards.checkpoint, wildcards.dataset)
with resumable.job(snakemake, *path, gpus=gpus) as place:
    directory = hub.model_place(snakemake.input.model)
    spread = "balanced" if gpus > 1 and place.device == "cuda" else place.device
    size = cost.decoder_size(opening.files_of(directory).parameters, opening.require_decoder(directory))
    options = {"precision": params.precision, "recomputed": params.activation_checkpointing}
    lengths = [artifacts.read_tensors(source, "tokens")["tokens"].shape[1] for source in snakemake.input.prompts]
    for n in lengths:
        cost.require_room(wildcards.model, size.memory(n, params.tokens_per_batch, **options), spread, **options)
    model = opening.open_decoder(directory, spread, params.precision, positions=params.positions)
    run = [hub.stamp(directory), dict(params.items()), spread, transformers.__version__]
    for source, target in zip(snakemake.input.prompts, snakemake.output, strict=True):
        prompts = artifacts.read_tensors(source, "tokens", "documents")
        n = prompts["tokens"].shape[1]
        result = measure_decoder(
            model,
            prompts["tokens"],
            params.tokens_per_batch,
            documents=prompts["documents"],
            quantities=Quantities(content=True, gram=True, matrices_up_to=params.matrices_up_to),
            activation_checkpointing=params.activation_checkpointing,
            resumption=Resumption(place.folder / f"n{n}.safetensors", run, place.checkpoint_every),
        )
        measurement.write(target, result, **dict(wildcards.items()))
