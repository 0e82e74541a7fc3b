from position_bias.language_models import corpus
from position_bias.running import runtime

with runtime.job(snakemake.log[0]):
    out = snakemake.output
    corpus.write(snakemake.params.corpus, out.train, out.test, out.manifest)
