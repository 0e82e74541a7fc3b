import torch

from position_bias import artifacts, runtime
from position_bias.language_models import families
from position_bias.measure import measure

with runtime.job(snakemake.log[0]), runtime.device(snakemake.config["device"]) as device:
    runtime.keep_freed_memory()
    torch.set_num_threads(snakemake.threads)
    wildcards, out = snakemake.wildcards, snakemake.output
    model = families.open_model(snakemake.input.model, device, snakemake.params.precision)
    slopes = families.effective_slopes(model.config)
    files = zip(out.mixing, out.content, out.attention, out.influence, out.slopes, strict=True)
    for source, (mixing, content, attention, influence, alibi) in zip(snakemake.input.prompts, files, strict=True):
        prompts = artifacts.read_tensors(source, "prompts")["prompts"]
        measured = measure(model, prompts, snakemake.params.tokens_per_batch)
        matrices = {} if measured.content is None else {"mean": measured.content}
        labels = {**dict(wildcards.items()), "n": prompts.shape[1]}
        artifacts.write_tensors(mixing, measured.mixing, **labels)
        artifacts.write_tensors(content, {"diagonal": measured.diagonal, "below": measured.below, **matrices}, **labels)
        artifacts.write_tensors(attention, {} if measured.attention is None else {"mean": measured.attention}, **labels)
        artifacts.write_tensors(influence, {"influence": measured.influence}, **labels)
        artifacts.write_tensors(alibi, {"slopes": slopes}, **labels)
