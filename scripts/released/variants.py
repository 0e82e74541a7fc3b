from position_bias.released import variants, written
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    profiles = written.by_variant(written.read_profiles(snakemake.input.profiles))
    columns = ["table", "dataset", "n", "model", "variant", "value"]
    printed = artifacts.read_table(snakemake.input.published, columns)
    table = variants.table(profiles, variants.printed_at(snakemake.params.n, printed))
    artifacts.write_table(snakemake.output.csv, table)
    artifacts.write_table(snakemake.output.md, variants.readable(table))
