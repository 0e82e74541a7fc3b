import shutil
from pathlib import Path

import pandas as pd
import torch

from position_bias.emergence import studies, training
from position_bias.emergence.task import for_vocabulary
from position_bias.running import artifacts, devices, provenance, runtime
from position_bias.small_networks.ensemble import Recipe

with runtime.job(snakemake.log[0]), devices.computing(snakemake.config["device"], snakemake.threads) as device:
    params, wildcards = snakemake.params, snakemake.wildcards
    task = for_vocabulary(wildcards.vocabulary, params.task)
    study = studies.study(wildcards.study, params.networks)
    setting = training.Setting(
        recipe=Recipe(params.iterations, params.learning_rate, params.weight_decay),
        batch=params.batch,
        decay=params.decay,
        sequences=params.sequences,
        sequences_along=params.along,
        observe_every=params.every,
    )
    folder = Path("checkpoints/emergence", wildcards.vocabulary, wildcards.study, f"depth{wildcards.depth}")
    outcome = training.train(
        task,
        study,
        int(wildcards.depth),
        range(params.seeds),
        setting,
        checkpoint_every=snakemake.config["emergence"]["training"]["checkpoint_every"],
        folder=folder,
        device=device,
    )
    labels = {
        "vocabulary": wildcards.vocabulary,
        "study": wildcards.study,
        "bias": study.bias_name,
        "residual": study.residual,
        "depth": int(wildcards.depth),
    }
    members = [member.labels() for member in outcome.members]
    weights = {name: value.numpy() for name, value in outcome.weights.items()}
    artifacts.write_tensors(snakemake.output.weights, weights, **labels, members=members)
    made_with = {"device": device, "torch": torch.__version__}
    artifacts.write_table(snakemake.output.curves, outcome.curves.assign(**labels, **made_with))
    run = {
        **labels,
        "networks": " ".join(params.networks),
        "seeds": params.seeds,
        "diverged": len(study.networks) * params.seeds - len(outcome.members),
        "iterations": params.iterations,
        "batch": params.batch,
        "learning_rate": params.learning_rate,
        "weight_decay": params.weight_decay,
        "sequences": params.sequences,
        "sequences_along": params.along,
        "coordinates": task.scale,
        **provenance.training(Path(snakemake.scriptdir).parents[1], folder, device),
    }
    artifacts.write_table(snakemake.output.run, pd.DataFrame([run]))
    shutil.rmtree(folder)
