from position_bias.running import artifacts, runtime
from position_bias.structural import content


def measurements(attention, slopes, mixing):
    for one, of_heads, by_prompt in zip(attention, slopes, mixing, strict=True):
        labels = artifacts.read_labels(one)
        prompts = len(artifacts.read_tensors(by_prompt, "frobenius")["frobenius"])
        kernels = artifacts.read_tensors(one, "mean")["mean"]
        yield {**labels, "prompts": prompts}, kernels, artifacts.read_tensors(of_heads, "slopes")["slopes"]


with runtime.job(snakemake.log[0]):
    files = snakemake.input
    table = content.kernels(measurements(files.attention, files.slopes, files.mixing))
    artifacts.write_table(snakemake.output.csv, table)
    artifacts.write_table(snakemake.output.md, content.readable_kernels(table))
