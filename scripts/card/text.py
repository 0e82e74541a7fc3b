from contextlib import closing
from pathlib import Path

from position_bias.card import texts
from position_bias.language_models import corpus, hub, tokens
from position_bias.running import runtime

with runtime.job(snakemake.log[0]):
    params, out = snakemake.params, snakemake.output
    described = {"source": params.source, "characters": params.characters}
    if params.local:
        found = texts.documents(Path(params.source))
    else:
        described["revision"] = hub.newest_text(params.source)
        found = tokens.texts(params.source, "train", None, described["revision"], texts.COLUMN)
    with closing(found) as documents:
        first = texts.up_to(params.characters, documents)
        corpus.write_fetched(first, described, Path(out.texts), Path(out.manifest))
