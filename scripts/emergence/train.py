from position_bias.emergence import studies, training
from position_bias.emergence.task import for_vocabulary
from position_bias.running import artifacts, provenance, resumable
from position_bias.small_networks.ensemble import Recipe

params, wildcards = snakemake.params, snakemake.wildcards
path = ("emergence", wildcards.vocabulary, wildcards.study, f"depth{wildcards.depth}")
with resumable.job(snakemake.log[0], snakemake.config, snakemake.threads, *path) as place:
    task = for_vocabulary(wildcards.vocabulary, params.task)
    study = studies.study(wildcards.study, params.networks)
    numbers, testing = params.training, params.testing
    setting = training.Setting(
        recipe=Recipe(numbers["iterations"], numbers["learning_rate"], numbers["weight_decay"]),
        batch=numbers["batch"],
        decay=params.decay,
        sequences=testing["sequences"],
        sequences_along=testing["sequences_along"],
        observe_every=testing["every"],
    )
    outcome = training.train(task, study, int(wildcards.depth), range(params.seeds), setting, place)
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
    artifacts.write_table(snakemake.output.curves, outcome.curves.assign(**labels, **place.made_with))
    told = {
        **labels,
        "networks": " ".join(params.networks),
        "seeds": params.seeds,
        "diverged": len(study.networks) * params.seeds - len(outcome.members),
        **{name: numbers[name] for name in ("iterations", "batch", "learning_rate", "weight_decay")},
        **{name: testing[name] for name in ("sequences", "sequences_along")},
        "coordinates": task.scale,
    }
    provenance.write_training(snakemake.output.run, told, place)
