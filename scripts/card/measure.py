import json
from pathlib import Path

from position_bias.card import measuring, sources, texts
from position_bias.language_models import hub
from position_bias.running import resumable

params = snakemake.params
path = ("measure", "card", snakemake.wildcards.card)
with resumable.job(snakemake, *path, stage="card", gpus=params.gpus) as place:
    model = hub.model_place(snakemake.input.record)
    planned = measuring.plan_of_files(
        model,
        texts.documents(sources.source(f"./{snakemake.input.texts}")),
        measuring.Options(**params.options),
        place.device,
        params.precision,
        params.untrained,
        name=params.name,
        text=params.text,
        sources=json.loads(Path(snakemake.input.sources).read_text(encoding="utf-8")),
    )
    planned.announce()
    spread = "balanced" if params.gpus > 1 and place.device == "cuda" else None
    found = measuring.open_and_carry_out(planned, model, place.folder, place.checkpoint_every, params.files, spread)
    found.write(snakemake.output[0])
