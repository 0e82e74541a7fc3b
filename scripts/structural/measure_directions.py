from pathlib import Path

import transformers

from position_bias.language_models import hub, opening, tokens
from position_bias.language_models.directions import Directions
from position_bias.language_models.measure import Asked, measure
from position_bias.language_models.passes import Resumption
from position_bias.rollout import measurement
from position_bias.running import resumable, runtime

OFTEN = 2  # prompts after which what was seen is kept: many passes are made through each
wildcards, params = snakemake.wildcards, snakemake.params
path = ("measure", snakemake.rule, *wildcards)
with resumable.job(snakemake, *path) as place:
    source = hub.model_place(snakemake.input.model)
    drawn_by = runtime.seed(params.seed, "directions", wildcards.checkpoint)
    model = opening.open_decoder_or_copy(
        source, params.initializer_range, drawn_by, place.folder, place.device, params.positions
    )
    n = int(wildcards.n)
    tokenizer, before = opening.open_tokenizer(source)
    texts = tokens.texts(Path(snakemake.input.texts).parent, "test")
    drawn = tokens.sample_prompts(texts, tokenizer, n - len(before), params.prompts, "every", params.seed)
    changes = Directions(tuple(params.ways), params.draws, params.seed, params.terms, params.rollouts)
    found = measure(
        model,
        tokens.preceded(before, drawn.tokens),
        n,  # one prompt at a time, since each is passed through many times
        documents=drawn.documents,
        asked=Asked(directions=changes),
        resumption=Resumption(
            place.folder / "kept.safetensors",
            [hub.stamp(source), dict(params.items()), transformers.__version__],
            OFTEN,
        ),
    )
    measurement.write(snakemake.output[0], found, **dict(wildcards.items()), before=len(before), draws=params.draws)
