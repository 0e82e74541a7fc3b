from position_card.core import runtime
from position_card.models import hub

with runtime.job(snakemake.log[0]):
    params = snakemake.params
    hub.fetch_model(params.source, params.revision, params.family, snakemake.output[0])
