from contextlib import closing
from itertools import islice

from position_bias.language_models import corpus, tokens
from position_bias.running import runtime

with runtime.job(snakemake.log[0]):
    params, out = snakemake.params, snakemake.output
    described = {name: getattr(params, name) for name in ("source", "revision", "subset", "split", "column")}
    with closing(tokens.texts(params.source, params.split, params.subset, params.revision, params.column)) as texts:
        fetched = runtime.progress(islice(texts, params.documents), "fetching documents", params.documents)
        corpus.write_fetched(fetched, described, out.test, out.manifest)
