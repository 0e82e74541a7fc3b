import pandas as pd

from position_bias.drawing import style
from position_bias.emergence import figures, gaps
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    columns = ["depth", "seed", "iteration", "quantity", "value"]
    newer, older = (artifacts.read_table(path, columns) for path in snakemake.input.evidence)
    kept = pd.concat([newer, older[~older["depth"].isin(newer["depth"])]])
    long = kept[kept["quantity"].isin(gaps.PAIR_NAMES)].rename(columns={"quantity": "pair", "value": "gap"})
    tests = gaps.of_training_omega(gaps.read(snakemake.input.curves))
    by_seed = gaps.final_gaps(gaps.curves(tests))
    alike = by_seed[by_seed["encoding"] == "none"]
    level = snakemake.params.level
    laptop = gaps.summary(alike, [*gaps.CONFIGURATION, "pair"], "gap", level)
    style.save(figures.long_training(long, laptop, snakemake.params.last, level), *snakemake.output)
