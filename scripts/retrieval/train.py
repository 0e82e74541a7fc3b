from position_bias.emergence import studies
from position_bias.emergence.task import for_vocabulary
from position_bias.emergence.training import Setting
from position_bias.retrieval import networks
from position_bias.running import artifacts, provenance, resumable
from position_bias.small_networks.ensemble import Recipe

params, wildcards = snakemake.params, snakemake.wildcards
path = ("emergence", "retrieval", wildcards.study, f"depth{wildcards.depth}")
with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, *path, stage="retrieval") as place:
    task, numbers = for_vocabulary("gaussian", params.task), params.training
    setting = Setting(
        recipe=Recipe(params.iterations, numbers["learning_rate"], numbers["weight_decay"]),
        batch=numbers["batch"],
        decay=0.0,  # each network has its own
        sequences=task.items,  # what emergence tests is not used
        sequences_along=task.items,
        observe_every=params.iterations,
    )
    depth, seeds = int(wildcards.depth), range(params.seeds)
    members, weights = networks.train(task, wildcards.study, params.networks, depth, seeds, setting, place)
    labels = {
        "study": wildcards.study,
        "residual": studies.STUDIES[wildcards.study].residual,
        "depth": depth,
    }
    tensors = {name: value.numpy() for name, value in weights.items()}
    artifacts.write_tensors(
        snakemake.output.weights, tensors, **labels, members=[member.labels() for member in members]
    )
    told = {
        **labels,
        "networks": " ".join(params.networks),
        "seeds": params.seeds,
        "diverged": len(params.networks) * params.seeds - len(members),
        "iterations": params.iterations,
        **{name: numbers[name] for name in ("batch", "learning_rate", "weight_decay")},
    }
    provenance.write_training(snakemake.output.run, told, place)
