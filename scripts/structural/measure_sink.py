from pathlib import Path

import transformers

from position_bias.structural import sink_parts
from position_bias.workflow import resumable
from position_card.core import artifacts, runtime
from position_card.measures import recall
from position_card.measures.passes import Resumption, in_parts
from position_card.models import data_sets, hub, opening
from position_card.texts.prompts import sample_prompts

wildcards, params = snakemake.wildcards, snakemake.params
with resumable.job(snakemake, "measure", "sink", wildcards.model, gpus=params.gpus) as place:
    source = hub.model_place(snakemake.input.model)
    tokenizer, before = opening.open_tokenizer(source)
    model = opening.open_decoder(source, place.device, positions=params.positions)
    folder = Path(snakemake.input.texts).parent
    n, dataset, texts = params.tokens, folder.name, list(data_sets.texts(folder, "test"))
    seeds = {of: runtime.seed(params.seed, of, dataset, n) for of in ("prompts", "donors")}
    drawn = sample_prompts(texts, tokenizer, n, params.documents, "one", seeds["prompts"], before=before)
    prompts = drawn.tokens
    words = recall.common_words(texts, tokenizer, params.words, params.cue)
    drawn_by = runtime.seed(params.seed, "contexts", params.words)
    contexts = recall.random_contexts(words, params.words, params.contexts, params.cue, drawn_by)
    asked = (params.cue, before, params.tokens_per_batch, seeds["donors"])
    run = [hub.stamp(source), params.positions, params.words, params.contexts, *asked, transformers.__version__]
    kept = Resumption(place.folder / "parts.safetensors", run, 1)
    parts = sink_parts.parts(model, prompts, contexts, words, *asked)
    labels = {"model": wildcards.model, "dataset": dataset, "n": n, "before": len(before)}
    labels |= {"documents": drawn.documents.tolist(), "vocabulary": len(words), "words": params.words}
    artifacts.write_tensors(snakemake.output[0], in_parts(parts, prompts, kept), **labels)
