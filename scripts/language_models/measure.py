import shutil
from pathlib import Path

import transformers

from position_bias.language_models import families, hub
from position_bias.language_models.measure import Resumption, measure
from position_bias.running import artifacts, devices, runtime

config, granted = snakemake.config, snakemake.resources.gpu
gpus = config["hub_models"].get(snakemake.wildcards.model, {"gpus": 1})["gpus"]
with runtime.job(snakemake.log[0]), devices.computing(config["device"], snakemake.threads, gpus, granted) as device:
    wildcards, params, out = snakemake.wildcards, snakemake.params, snakemake.output
    directory = hub.model_directory(snakemake.input.model)
    place = "balanced" if gpus > 1 and device == "cuda" else device
    model = families.open_model(directory, place, params.precision, params.positions)
    slopes = families.effective_slopes(model.config)
    folder = Path("checkpoints/measure", wildcards.model, wildcards.checkpoint, wildcards.dataset)
    run = [hub.stamp(directory), dict(params.items()), place, transformers.__version__]
    quantities = (out.mixing, out.content, out.attention, out.influence, out.gram, out.slopes)
    lengths = zip(snakemake.input.prompts, *quantities, strict=True)
    for source, mixing, content, attention, influence, gram, alibi in lengths:
        prompts = artifacts.read_tensors(source, "prompts")["prompts"]
        n = prompts.shape[1]
        measured = measure(
            model,
            prompts,
            params.tokens_per_batch,
            activation_checkpointing=params.activation_checkpointing,
            resumption=Resumption(folder / f"n{n}.safetensors", run, config["measure"]["checkpoint_every"]),
        )
        labels = {**dict(wildcards.items()), "n": n}
        artifacts.write_tensors(mixing, measured.mixing, **labels)
        artifacts.write_tensors(content, measured.content_logits, **labels)
        artifacts.write_tensors(attention, {} if measured.attention is None else {"mean": measured.attention}, **labels)
        artifacts.write_tensors(influence, {"influence": measured.influence}, **labels)
        cosines = {} if measured.gram is None else {"mean": measured.gram}
        artifacts.write_tensors(gram, {"recency": measured.recency, **cosines}, **labels)
        artifacts.write_tensors(alibi, {} if slopes is None else {"slopes": slopes}, **labels)
    shutil.rmtree(folder, ignore_errors=True)
