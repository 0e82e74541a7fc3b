from position_bias.drawing import style
from position_bias.emergence import figures, gaps
from position_bias.emergence.task import for_vocabulary
from position_bias.running import runtime

with runtime.job(snakemake.log[0]), style.figure_style():
    tests = gaps.of_training_omega(gaps.read(snakemake.input.curves))
    by_seed = gaps.final_gaps(gaps.curves(tests))
    summary = gaps.summary(by_seed, [*gaps.CONFIGURATION, "pair"], "gap", snakemake.params.level)
    # The bound does not depend on the vocabulary.
    largest = for_vocabulary("gaussian", snakemake.params.task).largest_gap
    style.save(figures.trained_with_bias(summary, by_seed, largest), *snakemake.output)
