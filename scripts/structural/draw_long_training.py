from position_bias.drawing import style
from position_bias.running import artifacts, runtime
from position_bias.structural import figures_long_training, tables

LABELS = ["checkpoint", "value"]

with runtime.job(snakemake.log[0]), style.figure_style():
    given = snakemake.input
    statistics = [*LABELS, "estimator", "variant", "statistic", "low", "high"]
    read = figures_long_training.Tables(
        profiles=artifacts.read_table(given.profiles, tables.PROFILES),
        statistics=artifacts.read_table(given.statistics, statistics, undefined=True),
        mixing=artifacts.read_table(given.mixing, [*LABELS, "quantity", "layer"]),
        content=artifacts.read_table(given.content, [*LABELS, "quantity", "layer", "head"]),
        losses=artifacts.read_table(given.losses, ["seed", "split", "step", "loss"]),
    )
    style.save(figures_long_training.long_training(read), *snakemake.output)
