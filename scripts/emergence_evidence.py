import platform
from datetime import UTC, datetime

from position_bias import artifacts, runtime
from position_bias.emergence import gaps

with runtime.job(snakemake.log[0]):
    params = snakemake.params
    columns = [*gaps.CONFIGURATION, *gaps.COLUMNS, "device", "torch"]
    tests = artifacts.read_tables(snakemake.input.curves, columns)
    curves = gaps.curves(tests)
    varied = [name for name in gaps.CONFIGURATION if curves[name].nunique() > 1]
    artifacts.write_table(
        snakemake.output.curves, curves[[*varied, "seed", "iteration", "quantity", "value"]].round({"value": 5})
    )
    runs = tests.groupby([*gaps.CONFIGURATION, "device", "torch"], sort=False)
    described = runs.agg(seeds=("seed", "nunique"), iterations=("iteration", "max")).reset_index()
    artifacts.write_table(
        snakemake.output.runs,
        described.assign(
            batch=params.training["batch"],
            learning_rate=params.training["learning_rate"],
            weight_decay=params.training["weight_decay"],
            sequences=params.testing["sequences"],
            sequences_along=params.testing["sequences_along"],
            scale=params.scale,
            python=platform.python_version(),
            date=datetime.now(tz=UTC).date().isoformat(),
        ),
    )
