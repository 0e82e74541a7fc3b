from position_bias.retrieval import agreement
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    out, scale = snakemake.output, snakemake.params.scale
    profiles = artifacts.read_table(snakemake.input.profiles, agreement.COLUMNS).round({"value": 5})
    of_study = profiles["study"] + "/depth" + profiles["depth"].astype(str)
    kept = profiles[of_study.isin(snakemake.params.studies)]
    artifacts.write_table(out.profiles, kept.assign(scale=scale))
    runs = artifacts.read_tables(snakemake.input.runs, ["commit", "cpu_minutes"])
    artifacts.write_table(out.runs, runs.assign(scale=scale))
