from position_bias.running import artifacts, runtime
from position_bias.structural import checks_theory

with runtime.job(snakemake.log[0]):
    checks = checks_theory.checks(snakemake.params.scale)
    artifacts.write_table(snakemake.output.csv, checks)
    artifacts.write_table(snakemake.output.md, checks)
    artifacts.write_table(snakemake.output.forces, checks_theory.forces())
    artifacts.write_table(snakemake.output.dichotomy, checks_theory.dichotomy())
