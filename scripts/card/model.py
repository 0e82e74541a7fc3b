from position_bias.card import settings
from position_bias.language_models import hub, opening
from position_bias.language_models.sources import is_directory
from position_bias.running import runtime

with runtime.job(snakemake.log[0]):
    source, record = snakemake.params.source, snakemake.output[0]
    if is_directory(source):
        opening.require_decoder(source)
    hub.fetch_model(source, snakemake.params.revision, None, record)
    place = hub.model_place(record)
    opening.require_decoder(place)
    for fault in settings.faults_of_directory(place) if place.is_dir() else ():
        raise runtime.InputError(fault)
    opening.open_tokenizer(place)
