import json
from contextlib import closing
from pathlib import Path

from position_bias.card import sources, texts
from position_bias.language_models import hub, opening, tokens
from position_bias.language_models.settings import is_directory
from position_bias.running import runtime

with runtime.job(snakemake.log[0]):
    params, out = snakemake.params, snakemake.output
    if is_directory(params.source):
        opening.require_decoder(params.source)
    hub.fetch_model(params.source, params.revision, None, out.record)
    place = hub.model_place(out.record)
    opening.require_decoder(place)
    opening.open_tokenizer(place)
    if corpus := snakemake.input.get("corpus"):
        documents, origin = tokens.texts(Path(corpus).parent, "test"), params.text
    else:
        documents, origin = texts.read(sources.source(params.text))
    with closing(documents):
        texts.write(documents, out.texts)
    model = f"{params.source} at {revision}" if (revision := hub.revision(out.record)) else params.source
    with runtime.whole_file(out.sources) as partial:
        partial.write_text(json.dumps({"model": model, "text": origin}) + "\n", encoding="utf-8")
