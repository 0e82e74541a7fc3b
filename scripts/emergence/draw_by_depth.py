from position_bias.drawing import style
from position_bias.emergence import figures, gaps
from position_bias.emergence.task import for_vocabulary
from position_bias.running import runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    level, task = snakemake.params.level, for_vocabulary("gaussian", snakemake.params.task)
    tests = gaps.of_training_omega(gaps.read(snakemake.input.curves))
    by_seed = gaps.final_gaps(gaps.curves(tests))
    summary = gaps.summary(by_seed, [*gaps.CONFIGURATION, "pair"], "gap", level)
    accuracy = gaps.summary(gaps.by_position(tests), [*gaps.CONFIGURATION, "answer"], "accuracy", level)
    figure = figures.depth(summary, by_seed, accuracy, task.chance, task.copying_chance)
    style.save(figure, *snakemake.output)
