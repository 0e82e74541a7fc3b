from position_bias.running import artifacts, runtime
from position_bias.structural import content


def measurements(paths):
    for path in paths:
        of_prompts = artifacts.read_tensors(path, "diagonal", "below")
        labels = {**artifacts.read_labels(path), "prompts": len(of_prompts["diagonal"])}
        yield labels, of_prompts["diagonal"], of_prompts["below"]


with runtime.job(snakemake.log[0]):
    params = snakemake.params
    seed = runtime.seed(params.seed, "shift")
    table = content.shifts(measurements(snakemake.input.content), params.replicates, params.level, seed)
    for path in snakemake.output:
        artifacts.write_table(path, table)
