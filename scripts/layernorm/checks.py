import pandas as pd

from position_bias.emergence import gaps
from position_bias.layernorm import checks, pretrained
from position_bias.running import artifacts, runtime
from position_bias.verdicts import predictions, verdict

with runtime.job(snakemake.log[0]):
    inputs = snakemake.input
    theory = artifacts.read_table(inputs.theory, verdict.COLUMNS)
    random = artifacts.read_table(inputs.random, ["norm", "residual", "seed", "layer", "head", "quantity", "value"])
    trained = artifacts.read_tables(inputs.trained, ["norm", "seed", "state", "layer", "head", "quantity", "value"])
    models = pd.concat(
        pretrained.recency_table(artifacts.read_labels(path), artifacts.read_tensors(path, "recency")["recency"])
        for path in inputs.grams
    )
    tests = gaps.read(inputs.curves)
    alike = gaps.curves(tests[tests["encoding"] == "none"])
    predicted = predictions.predictions(inputs.predictions, "layernorm")
    measured = checks.checks(random, trained, models, alike, predicted, snakemake.params.scale, snakemake.params.level)
    table = pd.concat([theory, measured], ignore_index=True)
    artifacts.write_table(snakemake.output.csv, table)
    artifacts.write_table(snakemake.output.md, verdict.readable(table))
