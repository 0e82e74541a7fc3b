from position_bias.retrieval import agreement
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    table = agreement.predictors(
        artifacts.read_table(snakemake.input.profiles, agreement.COLUMNS), snakemake.params.level
    )
    for path in snakemake.output:
        artifacts.write_table(path, table)
