import transformers

from position_bias.language_models import families, hub
from position_bias.language_models.measure import measure
from position_bias.language_models.passes import Resumption
from position_bias.running import artifacts, resumable

wildcards, params, out = snakemake.wildcards, snakemake.params, snakemake.output
gpus = snakemake.config["hub_models"].get(wildcards.model, {"gpus": 1})["gpus"]  # no parameter: it decides no number
path = ("measure", wildcards.model, wildcards.checkpoint, wildcards.dataset)
computing = {"gpus": gpus, "granted": snakemake.resources.gpu}
with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, *path, **computing) as place:
    directory = hub.model_place(snakemake.input.model)
    spread = "balanced" if gpus > 1 and place.device == "cuda" else place.device
    model = families.open_model(directory, spread, params.precision, params.positions)
    slopes = families.effective_slopes(model.config)
    run = [hub.stamp(directory), dict(params.items()), spread, transformers.__version__]
    quantities = (out.mixing, out.content, out.attention, out.influence, out.gram, out.slopes)
    lengths = zip(snakemake.input.prompts, *quantities, strict=True)
    for source, mixing, content, attention, influence, gram, alibi in lengths:
        prompts = artifacts.read_tensors(source, "prompts")["prompts"]
        n = prompts.shape[1]
        measured = measure(
            model,
            prompts,
            params.tokens_per_batch,
            matrices_up_to=params.matrices_up_to,
            activation_checkpointing=params.activation_checkpointing,
            resumption=Resumption(place.folder / f"n{n}.safetensors", run, place.checkpoint_every),
        )
        labels = {**dict(wildcards.items()), "n": n}
        artifacts.write_tensors(mixing, measured.mixing, **labels)
        artifacts.write_tensors(content, measured.content_logits, **labels)
        artifacts.write_tensors(attention, {} if measured.attention is None else {"mean": measured.attention}, **labels)
        artifacts.write_tensors(influence, {"influence": measured.influence}, **labels)
        cosines = {} if measured.gram is None else {"mean": measured.gram}
        artifacts.write_tensors(gram, {"recency": measured.recency, **cosines}, **labels)
        artifacts.write_tensors(alibi, {} if slopes is None else {"slopes": slopes}, **labels)
