from position_bias.running import artifacts, runtime
from position_bias.structural import content


def measurements(paths):
    for path in paths:
        prompts = len(artifacts.read_tensors(path, "diagonal")["diagonal"])
        yield {**artifacts.read_labels(path), "prompts": prompts}, artifacts.read_tensors(path, "mean")["mean"]


with runtime.job(snakemake.log[0]):
    table5 = content.similarity(measurements(snakemake.input.content))
    artifacts.write_table(snakemake.output.csv, table5)
    artifacts.write_table(snakemake.output.md, content.readable_similarity(table5))
