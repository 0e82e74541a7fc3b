from position_bias import runtime
from position_bias.language_models import corpus

with runtime.job(snakemake.log[0]):
    out = snakemake.output
    corpus.write(snakemake.params.corpus, out.train, out.test, out.manifest)
