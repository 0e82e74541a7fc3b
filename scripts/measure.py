import torch

from position_bias import artifacts, runtime
from position_bias.language_models import families
from position_bias.measure import measure

with runtime.job(snakemake.log[0]), runtime.device(snakemake.config["device"]) as device:
    runtime.keep_freed_memory()
    torch.set_num_threads(snakemake.threads)
    model = families.open_model(snakemake.input.model, device)
    prompts = artifacts.read_tensors(snakemake.input.prompts, "prompts")["prompts"]
    measured = measure(model, prompts, snakemake.params.tokens_per_batch)
    out, wildcards = snakemake.output, snakemake.wildcards
    labels = {**dict(wildcards.items()), "n": int(wildcards.n)}
    content = {"diagonal": measured.diagonal, "below": measured.below}
    attention = {}
    if measured.content is not None:
        content["mean"] = measured.content
        attention["mean"] = measured.attention
    artifacts.write_tensors(out.mixing, measured.mixing, **labels)
    artifacts.write_tensors(out.content, content, **labels)
    artifacts.write_tensors(out.attention, attention, **labels)
    artifacts.write_tensors(out.influence, {"influence": measured.influence}, **labels)
    artifacts.write_tensors(out.slopes, {"slopes": families.effective_slopes(model.config)}, **labels)
