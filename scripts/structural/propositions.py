from position_bias import artifacts, runtime
from position_bias.claims import propositions

with runtime.job(snakemake.log[0]):
    checks = propositions.checks(snakemake.params.scale)
    artifacts.write_table(snakemake.output.csv, checks)
    artifacts.write_table(snakemake.output.md, checks)
    artifacts.write_table(snakemake.output.forces, propositions.forces())
    artifacts.write_table(snakemake.output.dichotomy, propositions.dichotomy())
