from position_bias.postnorm import training
from position_bias.postnorm.runs import Trial
from position_bias.workflow import resumable
from position_card.core import artifacts, provenance

params, output = snakemake.params, dict(snakemake.output.items())
with resumable.job(snakemake, "postnorm", params.experiment) as place:
    run = output.pop("run", None)
    tables = training.run([Trial(*trial) for trial in params.trials], list(output), place)
    for name, table in tables.items():
        artifacts.write_table(output[name], table.assign(**params.labels, **place.made_with))
    if run:
        provenance.write_training(run, params.run_facts, place)
