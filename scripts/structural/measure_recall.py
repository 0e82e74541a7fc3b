from pathlib import Path

import transformers

from position_bias.workflow import resumable
from position_card.core import artifacts, runtime
from position_card.measures import recall
from position_card.measures.passes import Resumption
from position_card.models import data_sets, hub, opening

wildcards, params = snakemake.wildcards, snakemake.params
n, path = int(wildcards.n), ("measure", "recall", wildcards.model, wildcards.n)
with resumable.job(snakemake, *path, gpus=params.gpus) as place:
    source = hub.model_place(snakemake.input.model)
    tokenizer, before = opening.open_tokenizer(source)
    model = opening.open_decoder(source, place.device, positions=params.positions)
    texts = list(data_sets.texts(Path(snakemake.input.texts).parent, "test"))
    words = recall.common_words(texts, tokenizer, n, params.cue)
    drawn_by = runtime.seed(params.seed, "contexts", n)
    prose = recall.prose(texts, tokenizer, n)
    contexts = recall.random_contexts(words, n, params.contexts, params.cue, drawn_by, prose)
    run = [hub.stamp(source), params.positions, params.cue, transformers.__version__]
    found = recall.measure_recall(
        model,
        contexts,
        words,
        params.cue,
        params.tokens_per_batch,
        before=before,
        resumption=Resumption(place.folder / "contexts.safetensors", run, 1),
    )
    labels = {"model": wildcards.model, "n": n, "cue": params.cue, "words": len(words)}
    artifacts.write_tensors(snakemake.output[0], found._asdict(), **labels)
