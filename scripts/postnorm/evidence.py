from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    out, columns = snakemake.output, ["task", "scheme", "seed", "length", "quantity", "value", "device", "torch"]
    tables = {
        out.tests: artifacts.read_tables(snakemake.input.tests, columns).drop(columns=["device", "torch"]),
        out.runs: artifacts.read_tables(snakemake.input.runs, ["commit", "cpu_minutes"]),
    }
    for path, table in tables.items():
        artifacts.write_table(path, table.round({"value": 6}).assign(scale=snakemake.params.scale))
