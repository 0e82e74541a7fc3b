import torch

from position_bias import artifacts, devices, runtime
from position_bias.language_models import families
from position_bias.measure import measure

with runtime.job(snakemake.log[0]), devices.device(snakemake.config["device"]) as device:
    runtime.keep_freed_memory()
    torch.set_num_threads(snakemake.threads)
    wildcards, out = snakemake.wildcards, snakemake.output
    model = families.open_model(snakemake.input.model, device, snakemake.params.precision)
    slopes = families.effective_slopes(model.config)
    quantities = (out.mixing, out.content, out.attention, out.influence, out.gram, out.slopes)
    lengths = zip(snakemake.input.prompts, *quantities, strict=True)
    for source, mixing, content, attention, influence, gram, alibi in lengths:
        prompts = artifacts.read_tensors(source, "prompts")["prompts"]
        measured = measure(model, prompts, snakemake.params.tokens_per_batch)
        matrices = {} if measured.content is None else {"mean": measured.content}
        labels = {**dict(wildcards.items()), "n": prompts.shape[1]}
        artifacts.write_tensors(mixing, measured.mixing, **labels)
        artifacts.write_tensors(content, {"diagonal": measured.diagonal, "below": measured.below, **matrices}, **labels)
        artifacts.write_tensors(attention, {} if measured.attention is None else {"mean": measured.attention}, **labels)
        artifacts.write_tensors(influence, {"influence": measured.influence}, **labels)
        cosines = {} if measured.gram is None else {"mean": measured.gram}
        artifacts.write_tensors(gram, {"recency": measured.recency, **cosines}, **labels)
        artifacts.write_tensors(alibi, {"slopes": slopes}, **labels)
