from position_bias.rollout import comparison
from position_bias.running import artifacts, runtime

with runtime.job(snakemake.log[0]):
    labels = artifacts.read_labels(snakemake.input.mixing)
    mixing = artifacts.read_tensors(snakemake.input.mixing)
    slopes = comparison.alibi_slopes(artifacts.read_tensors(snakemake.input.slopes), labels["model"])
    content = artifacts.read_tensors(snakemake.input.content, "diagonal", "below")
    attention = artifacts.read_tensors(snakemake.input.attention).get("mean")
    measured = comparison.Measured(
        mixing={name: value.astype(float) for name, value in mixing.items()},
        offset=content["diagonal"].astype(float) - content["below"],
        influence=artifacts.read_tensors(snakemake.input.influence, "influence")["influence"].astype(float),
        slopes=slopes,
        attention=None if attention is None else attention.astype(float),
    )
    seed = runtime.seed(snakemake.params.seed, "bootstrap", labels["dataset"], labels["n"])
    profiles, values = comparison.compare(measured, snakemake.params.bootstrap, snakemake.params.level, seed)
    statistics = comparison.summary(values, snakemake.params.level)
    for path, table in zip(snakemake.output, (profiles, statistics, values), strict=True):
        artifacts.write_table(path, table.assign(**labels, prompts=measured.prompts))
