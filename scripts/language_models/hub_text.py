from contextlib import closing
from itertools import islice

from position_card.core import runtime
from position_card.models import data_sets
from position_card.texts import corpus

with runtime.job(snakemake.log[0]):
    dataset, out = dict(snakemake.params.described), snakemake.output
    count = dataset.pop("documents")
    names = ("source", "split", "subset", "revision", "column")
    with closing(data_sets.texts(*(dataset[name] for name in names))) as texts:
        documents = runtime.progress(islice(texts, count), "fetching documents", count)
        corpus.write_fetched(documents, dataset, out.test, out.manifest)
