from position_bias.language_models import hub
from position_bias.running import runtime

with runtime.job(snakemake.log[0]):
    params = snakemake.params
    hub.fetch_model(params.source, params.revision, params.family, snakemake.output[0])
