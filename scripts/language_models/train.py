import shutil
from pathlib import Path

import torch

from position_bias.language_models import families, train
from position_bias.workflow import resumable
from position_card.core import artifacts, devices, provenance, runtime
from position_card.models import data_sets
from position_card.texts import tokens
from position_card.texts.prompts import sample_prompts

RECIPE = ("steps", "batch", "context", "learning_rate", "warmup", "weight_decay", "clip")


def texts(paths, split):
    return (text for path in paths for text in data_sets.texts(Path(path).parent, split))


params, model, seed = snakemake.params, snakemake.wildcards.model, int(snakemake.wildcards.seed)
path = ("training", model, f"seed{seed}")  # outside the outputs, which a rerun deletes
with resumable.job(snakemake, *path) as place:
    numbers = params.training
    tokenizer = tokens.open_tokenizer(Path(snakemake.input.tokenizer))
    held_out = sample_prompts(
        texts(snakemake.input.test, "test"),
        tokenizer,
        numbers["context"],
        numbers["held_out"],
        "every",
        runtime.seed(seed, "held out"),
        remedy="lower training.held_out or training.context, or add to training.datasets",
    ).tokens

    def save(trained, directory):
        trained.save_pretrained(directory)
        tokens.add_tokenizer(tokenizer, directory)

    bf16 = devices.native_bf16(place.device)
    loss = train.train(
        families.build(params.family, params.architecture, tokenizer.get_vocab_size(), numbers["context"], seed),
        tokens.stream(texts(snakemake.input.train, "train"), tokenizer),
        train.TrainingRecipe(**{name: numbers[name] for name in RECIPE}),
        place,
        seed=seed,
        snapshots=numbers["snapshots"],
        bf16=bf16,
        held_out=held_out,
        save=save,
    )
    for directory in snakemake.output.models:
        with runtime.whole_directory(directory) as partial:
            shutil.copytree(place.folder / Path(directory).name, partial, dirs_exist_ok=True)
    made_with = {"device": place.device, "bf16": bf16, "torch": torch.__version__}
    artifacts.write_table(snakemake.output.loss, loss.assign(model=model, seed=seed, **made_with))
    run_facts = {
        "model": model,
        "seed": seed,
        "family": params.family,
        **params.architecture,
        **{name: numbers[name] for name in ("context", "batch", "steps", "learning_rate")},
    }
    provenance.write_training(snakemake.output.run, run_facts, place)
