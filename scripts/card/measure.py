from contextlib import closing
from pathlib import Path

import transformers

from position_bias.card import lengths, settings, size, texts
from position_bias.language_models import hub, opening, tokens
from position_bias.language_models.measure import PREDICTED, measure
from position_bias.language_models.passes import Resumption
from position_bias.running import provenance, resumable, runtime

name, params = snakemake.wildcards.card, snakemake.params
computing = {"stage": "card", "gpus": params.gpus, "granted": snakemake.resources.gpu}
path = ("measure", "card", name)
with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, *path, **computing) as place:
    directory = hub.model_place(snakemake.input.model)
    config = opening.require_decoder(directory)
    tokenizer, before = opening.open_tokenizer(directory)
    with closing(tokens.texts(Path(snakemake.input.texts).parent, "test")) as documents:
        fitting = opening.lengths(config, params.lengths)
        for n in sorted(set(params.lengths) - set(fitting)):
            runtime.announce(f"{name}: the model takes {max(fitting)} tokens, so prompts of {n} are cut to that")
        prompts = texts.prompts(list(documents), tokenizer, before, fitting, params.prompts, params.seed)
    found = size.size(opening.files_of(directory), config)
    precision = found.precision if params.precision == "auto" else params.precision
    recomputed = params.activation_checkpointing
    at_once = {
        n: params.tokens_per_batch or found.batch(n, precision, place.device, recomputed=recomputed) for n in prompts
    }
    needed = max(found.memory(n, at_once[n], precision, recomputed=recomputed) for n in prompts)
    runtime.announce(
        f"{name}: {found.parameters:,} parameters in {precision} on {place.device}; measuring takes about "
        f"{needed / 1e9:.1f} GB of memory"
    )
    spread = "balanced" if params.gpus > 1 and place.device == "cuda" else place.device
    if params.untrained is None:
        model = opening.open_decoder(directory, spread, precision, config)
    else:
        drawn_by = runtime.seed(params.seed, "card", "untrained", params.untrained)
        model = opening.open_untrained(directory, drawn_by, place.folder, spread, precision)
    for n in prompts:
        opening.require_known_tokens(prompts[n].tokens, model, directory)
    files = settings.stamp(settings.files_of_model(directory))
    run = [files, dict(params.items()), spread, transformers.__version__, PREDICTED]
    measurements = {
        n: measure(
            model,
            prompts[n].tokens,
            at_once[n],
            documents=prompts[n].documents,
            activation_checkpointing=recomputed,
            resumption=Resumption(place.folder / f"n{n}.safetensors", [*run, n], place.checkpoint_every),
            section="card",
        )
        for n in prompts
    }
    lengths.write(
        snakemake.output[0],
        measurements,
        model={"type": config.model_type, "untrained": params.untrained, **vars(found)},
        prompts={str(n): of.noted() for n, of in prompts.items()},
        predicted=PREDICTED,
        before=[tokenizer.id_to_token(token) for token in before],
        asked=list(params.lengths),
        longest=opening.longest(config),
        precision=precision,
        device=place.device,
        tokens_per_batch={str(n): tokens for n, tokens in at_once.items()},
        bytes=needed,
        versions=provenance.versions(),
    )
