from functools import partial
from pathlib import Path

import numpy as np
import transformers

from position_bias.workflow import resumable
from position_card.core import artifacts, runtime
from position_card.measures import passes, replacement
from position_card.models import data_sets, hub, opening
from position_card.rollout.parts import eighths, words
from position_card.texts.prompts import sample_prompts

KEPT_AFTER = 4  # documents

wildcards, params = snakemake.wildcards, snakemake.params
n, path = int(wildcards.n), ("measure", wildcards.model, wildcards.checkpoint, f"curve-n{wildcards.n}")
with resumable.job(snakemake, *path, gpus=params.gpus) as place:
    source = hub.model_place(snakemake.input.model)
    tokenizer, before = opening.open_tokenizer(source)
    drawn_by = runtime.seed(params.seed, "pretrained", wildcards.checkpoint)
    model = opening.open_decoder_or_copy(
        source, params.initializer_range, drawn_by, place.folder, place.device, params.positions
    )
    texts = data_sets.texts(Path(snakemake.input.texts).parent, "test")
    seeds = [runtime.seed(params.seed, kind, params.dataset, n) for kind in ("curve", "curve donors")]
    drawn = sample_prompts(texts, tokenizer, n, params.documents, "one", seeds[0], before=before)
    prompts = drawn.tokens[: params.measured]
    donors = replacement.donors(drawn.tokens, params.donors, seeds[1])[: params.measured]
    windows = [*words(n, len(before)), *eighths(n, len(before))]

    def moved(some):
        """Both responses of some of the prompts, [2, N, W, S, D]."""
        return np.stack(
            replacement.responses(model, prompts[some], windows, donors[some], params.steps, params.tokens_per_batch)
        )

    starts = range(0, len(prompts), KEPT_AFTER)
    parts = {str(start): partial(moved, slice(start, start + KEPT_AFTER)) for start in starts}
    run = [hub.stamp(source), drawn_by, params.initializer_range, params.positions, transformers.__version__]
    run += [params.documents, params.donors, params.steps, *seeds]
    kept = passes.in_parts(parts, prompts, passes.Resumption(place.folder / "kept.safetensors", run, KEPT_AFTER))
    found = np.concatenate([*kept.values()], 1)
    tensors = dict(zip(replacement.Responses._fields, found, strict=True)) | {
        "documents": drawn.documents[: len(prompts)]
    }
    labels = {**dict(wildcards.items()), "n": n, "dataset": params.dataset, "steps": params.steps}
    artifacts.write_tensors(snakemake.output[0], tensors, **labels)
