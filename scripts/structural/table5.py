from position_bias import artifacts, runtime, structure


def measurements(paths):
    for path in paths:
        content = artifacts.read_tensors(path, "mean", "diagonal")
        yield {**artifacts.read_labels(path), "prompts": len(content["diagonal"])}, content["mean"]


with runtime.job(snakemake.log[0]):
    table5 = structure.similarity(measurements(snakemake.input.content))
    artifacts.write_table(snakemake.output.csv, table5)
    artifacts.write_table(snakemake.output.md, structure.readable_similarity(table5))
