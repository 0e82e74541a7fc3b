from pathlib import Path

import transformers

from position_bias.structural import initialization, untrained
from position_bias.workflow import resumable
from position_card.core import artifacts, runtime
from position_card.measures.passes import Resumption, in_parts
from position_card.models import data_sets, hub, opening
from position_card.texts.prompts import sample_prompts

wildcards, params = snakemake.wildcards, snakemake.params
with resumable.job(snakemake, "measure", "initialization", wildcards.model, gpus=params.gpus) as place:
    source = hub.model_place(snakemake.input.model)
    tokenizer, before = opening.open_tokenizer(source)
    n, dataset = params.tokens, Path(snakemake.input.texts).parent.name
    texts = data_sets.texts(Path(snakemake.input.texts).parent, "test")
    seed = runtime.seed(params.seed, "prompts", dataset, n)
    prompts = sample_prompts(texts, tokenizer, n, params.prompts, "every", seed, before=before).tokens
    study = {name: params[name] for name in ("deviations", "layers", "seeds")}
    drawn_by = runtime.seed(params.seed, "initialization")
    networks = initialization.networks(**study)
    parts = untrained.parts(source, networks, prompts, drawn_by, place.folder, place.device, params.positions)
    run = [hub.stamp(source), drawn_by, params.positions, transformers.__version__]
    kept = Resumption(place.folder / "networks.safetensors", run, 1)
    labels = {"model": wildcards.model, "dataset": dataset, "n": n, "before": len(before), **study}
    width = opening.require_decoder(source).get_text_config().hidden_size
    artifacts.write_tensors(snakemake.output[0], in_parts(parts, prompts, kept), **labels, width=width)
