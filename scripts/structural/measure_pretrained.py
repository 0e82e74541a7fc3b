from pathlib import Path

import transformers

from position_bias.workflow import resumable
from position_card.core import artifacts, runtime
from position_card.measures import replacement
from position_card.measures.measure import Quantities, measure_decoder
from position_card.measures.passes import Resumption
from position_card.models import data_sets, hub, opening
from position_card.rollout import measurement
from position_card.texts.prompts import sample_prompts

wildcards, params, out = snakemake.wildcards, snakemake.params, snakemake.output
path = ("measure", wildcards.model, wildcards.checkpoint)
with resumable.job(snakemake, *path, gpus=params.gpus) as place:
    source = hub.model_place(snakemake.input.model)
    tokenizer, before = opening.open_tokenizer(source)
    drawn_by = runtime.seed(params.seed, "pretrained", wildcards.checkpoint)
    model = opening.open_decoder_or_copy(
        source, params.initializer_range, drawn_by, place.folder, place.device, params.positions
    )
    run = [hub.stamp(source), drawn_by, params.initializer_range, params.positions, transformers.__version__]
    labels = {**dict(wildcards.items()), "before": len(before), "initializer_range": params.initializer_range}
    folders = {Path(texts).parent.name: Path(texts).parent for texts in snakemake.input.texts}

    def sampled(dataset, n, count):
        """Prompts of n tokens, those that the tokenizer puts first among them."""
        seed = runtime.seed(params.seed, "prompts", dataset, n)
        texts = data_sets.texts(folders[dataset], "test")
        return sample_prompts(texts, tokenizer, n, count, "every", seed, before=before)

    for (dataset, n, count, groups), target in zip(params.measured, out.measured, strict=True):
        prompts, documents = sampled(dataset, n, count)
        found = measure_decoder(
            model,
            prompts,
            params.tokens_per_batch,
            documents=documents,
            quantities=Quantities(gram=True, apart=True, groups=groups, matrices_up_to=params.matrices_up_to),
            resumption=Resumption(
                place.folder / f"{dataset}-n{n}.safetensors", [*run, count, groups], place.checkpoint_every
            ),
        )
        measurement.write(
            target, found, **labels, dataset=dataset, positions=replacement.chosen_positions(n, len(before))
        )

    if params.replaced:
        dataset, n, count = params.replaced
        prompts, documents = sampled(dataset, n, count)
        positions = replacement.chosen_positions(n, len(before))
        windows = [slice(position, position + 1) for position in positions]
        others = replacement.donors(prompts, 1, runtime.seed(params.seed, "donors", dataset, n))
        moved = replacement.responses(model, prompts, windows, others, [1.0], params.tokens_per_batch)
        effects = {"replacement": moved.total_variation[..., 0, 0], "documents": documents}
        artifacts.write_tensors(out.replaced, effects, **labels, dataset=dataset, n=n, prompts=count)
