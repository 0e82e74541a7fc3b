from position_bias.running import artifacts, runtime
from position_bias.structural import rotary

with runtime.job(snakemake.log[0]):
    given, out = snakemake.input, snakemake.output
    tables = {
        out.rotary: artifacts.read_tables(given.rotary, ["model", "seed", "step", *rotary.COLUMNS]),
        out.losses: artifacts.read_tables(given.losses, ["model", "seed", "step", "split", "loss"]),
        out.runs: artifacts.read_tables(given.runs, ["commit", "cpu_minutes"]),
    }
    for path, table in tables.items():
        artifacts.write_table(path, table.round({"value": 7, "loss": 6}).assign(scale=snakemake.params.scale))
