import transformers

from position_bias.language_models import hub, opening
from position_bias.language_models.measure_decoder import measure_decoder
from position_bias.language_models.passes import Resumption
from position_bias.running import artifacts, resumable
from position_bias.structural import rotary

wildcards, params = snakemake.wildcards, snakemake.params
path = ("measure", "rotary", wildcards.model, wildcards.checkpoint)
with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, *path) as place:
    prompts = artifacts.read_tensors(snakemake.input.prompts, "prompts")["prompts"]
    model = opening.open_decoder(snakemake.input.model, place.device)
    run = [hub.stamp(snakemake.input.model), dict(params.items()), transformers.__version__]
    measured = measure_decoder(
        model,
        prompts,
        params.tokens_per_batch,
        resumption=Resumption(place.folder / "measured.safetensors", run, place.checkpoint_every),
    )
    seed, step = (int("".join(filter(str.isdigit, part))) for part in wildcards.checkpoint.split("/"))
    labels = {"model": wildcards.model, "seed": seed, "step": step}
    artifacts.write_table(snakemake.output[0], rotary.described(measured).assign(**labels))
