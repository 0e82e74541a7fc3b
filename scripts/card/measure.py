import json
from pathlib import Path

from position_bias.card import measuring, sources, texts
from position_bias.card.subject import of_files
from position_bias.language_models import hub
from position_bias.running import resumable

params = snakemake.params
path = ("measure", "card", snakemake.wildcards.card)
with resumable.job(snakemake, *path, stage="card", gpus=params.gpus) as place:
    model = hub.model_place(snakemake.input.record)
    origin = json.loads(Path(snakemake.input.sources).read_text(encoding="utf-8"))
    known = of_files(model, params.name, origin["model"], place.device, params.precision, params.untrained)
    documents = texts.documents(sources.source(f"./{snakemake.input.texts}"))
    planned = measuring.plan(known, documents, measuring.Options(**params.options), params.text, origin["text"])
    planned.announce()
    spread = "balanced" if params.gpus > 1 and place.device == "cuda" else None
    found = measuring.open_and_carry_out(planned, model, place.folder, place.checkpoint_every, params.files, spread)
    found.write(snakemake.output[0])
