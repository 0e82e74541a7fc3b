from position_bias.drawing import style
from position_bias.emergence import figures, gaps
from position_bias.emergence.task import for_vocabulary
from position_bias.running import runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    level, task = snakemake.params.level, for_vocabulary("gaussian", snakemake.params.task)
    tests = gaps.of_training_omega(gaps.read(snakemake.input.curves))
    keys = [*gaps.CONFIGURATION, "iteration", "quantity"]
    curves = gaps.summary(gaps.curves(tests), keys, "value", level)
    style.save(figures.learning_curves(curves, task.chance, task.copying_chance), *snakemake.output)
