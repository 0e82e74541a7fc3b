import shutil
from pathlib import Path

import pandas as pd
import torch

from position_bias.language_models import families, tokens, train
from position_bias.running import artifacts, devices, provenance, runtime


def texts(paths, split):
    return (text for path in paths for text in tokens.texts(Path(path).parent, split))


with runtime.job(snakemake.log[0]), devices.computing(snakemake.config["device"], snakemake.threads) as device:
    params, model, seed = snakemake.params, snakemake.wildcards.model, int(snakemake.wildcards.seed)
    tokenizer = tokens.open_tokenizer(Path(snakemake.input.tokenizer))
    held_out = tokens.sample_prompts(
        texts(snakemake.input.test, "test"),
        tokenizer,
        params.context,
        params.held_out,
        "every",
        runtime.seed(seed, "held out"),
        remedy="lower training.held_out or training.context, or add to training.datasets",
    )

    def save(trained, directory):
        trained.save_pretrained(directory)
        tokens.add_tokenizer(tokenizer, directory)

    folder = Path("checkpoints") / model / f"seed{seed}"  # outside the outputs, which a rerun deletes
    loss = train.train(
        families.build(params.family, params.architecture, tokenizer.get_vocab_size(), params.context, seed),
        tokens.stream(texts(snakemake.input.train, "train"), tokenizer),
        train.Recipe(
            steps=params.steps,
            batch=params.batch,
            context=params.context,
            learning_rate=params.learning_rate,
            warmup=params.warmup,
            weight_decay=params.weight_decay,
            clip=params.clip,
        ),
        seed=seed,
        snapshots=params.snapshots,
        folder=folder,
        device=device,
        bf16=train.native_bf16(device),
        held_out=held_out,
        checkpoint_every=snakemake.config["training"]["checkpoint_every"],
        save=save,
    )
    for directory in snakemake.output.models:
        with runtime.whole_directory(directory) as partial:
            shutil.copytree(folder / Path(directory).name, partial, dirs_exist_ok=True)
    made_with = {"device": device, "bf16": train.native_bf16(device), "torch": torch.__version__}
    artifacts.write_table(snakemake.output.loss, loss.assign(model=model, seed=seed, **made_with))
    run = {
        "model": model,
        "seed": seed,
        "family": params.family,
        **params.architecture,
        "context": params.context,
        "batch": params.batch,
        "steps": params.steps,
        "learning_rate": params.learning_rate,
        **provenance.training(Path(snakemake.scriptdir).parents[1], folder, device),
    }
    artifacts.write_table(snakemake.output.run, pd.DataFrame([run]))
    shutil.rmtree(folder)
