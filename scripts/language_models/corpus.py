from position_card.core import runtime
from position_card.texts import corpus

with runtime.job(snakemake.log[0]):
    out = snakemake.output
    corpus.write(snakemake.params.corpus, out.train, out.test, out.manifest)
