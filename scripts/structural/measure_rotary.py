import transformers

from position_bias.language_models import hub, measured, opening
from position_bias.language_models.measure_decoder import measure_decoder
from position_bias.language_models.passes import Resumption
from position_bias.running import artifacts, resumable

wildcards, params = snakemake.wildcards, snakemake.params
path = ("measure", "rotary", wildcards.model, wildcards.checkpoint)
with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, *path) as place:
    prompts = artifacts.read_tensors(snakemake.input.prompts, "prompts")["prompts"]
    directory = hub.model_place(snakemake.input.model)
    run = [hub.stamp(directory), dict(params.items()), transformers.__version__]
    found = measure_decoder(
        opening.open_decoder(directory, place.device),
        prompts,
        params.tokens_per_batch,
        resumption=Resumption(place.folder / "measured.safetensors", run, place.checkpoint_every),
    )
    measured.write(snakemake.output[0], {prompts.shape[1]: found})
