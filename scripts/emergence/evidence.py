from position_bias.emergence import gaps
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    tests, out = gaps.read(snakemake.input.curves), snakemake.output
    tables = {
        out.curves: gaps.curves(tests),
        out.accuracy: gaps.by_position(tests),
        out.runs: artifacts.read_tables(snakemake.input.runs, ["commit", "cpu_minutes"]),
    }
    for path, table in tables.items():
        artifacts.write_table(path, table.round({"value": 5, "accuracy": 5}).assign(scale=snakemake.params.scale))
