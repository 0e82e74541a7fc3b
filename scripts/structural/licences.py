from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    licences = artifacts.read_table(snakemake.input.published, ["resource", "kind", "licence", "link", "used"])
    for path in snakemake.output:
        artifacts.write_table(path, licences)
