from position_bias.card import settings
from position_bias.language_models import hub, opening
from position_bias.language_models.settings import is_directory
from position_bias.running import runtime

with runtime.job(snakemake.log[0]):
    source, record = snakemake.params.source, snakemake.output[0]
    if is_directory(source):
        opening.require_decoder(source)
    hub.fetch_model(source, snakemake.params.revision, None, record)
    directory = hub.model_directory(record)
    opening.require_decoder(directory)
    for fault in settings.faults_of_directory(directory):
        raise runtime.InputError(fault)
    opening.open_tokenizer(directory)
