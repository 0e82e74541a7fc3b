from position_bias.emergence import runs, training
from position_bias.emergence.task import for_vocabulary
from position_bias.small_networks.ensemble import Recipe
from position_bias.workflow import resumable
from position_card.core import artifacts, provenance

params, wildcards = snakemake.params, snakemake.wildcards
run = wildcards.vocabulary, wildcards.study, f"depth{wildcards.depth}"
with resumable.job(snakemake, "emergence", *run) as place:
    task = for_vocabulary(wildcards.vocabulary, params.task)
    study = runs.study(wildcards.study, params.networks, params.decay)
    numbers, testing = params.training, params.testing
    setting = training.StudySetting(
        recipe=Recipe(numbers["iterations"], numbers["learning_rate"], numbers["weight_decay"]),
        batch=numbers["batch"],
        sequences=testing["sequences"],
        sequences_along=testing["sequences_along"],
        observe_every=testing["every"],
    )
    outcome = training.train(task, study, int(wildcards.depth), params.seeds, setting, place)
    labels = {
        "vocabulary": wildcards.vocabulary,
        "study": wildcards.study,
        "bias": wildcards.study if study.bias else "none",
        "residual": study.residual,
        "depth": int(wildcards.depth),
    }
    weights = {name: value.numpy() for name, value in outcome.weights.items()}
    members = training.member_labels(outcome.members)
    artifacts.write_tensors(snakemake.output.weights, weights, **labels, members=members)
    artifacts.write_table(snakemake.output.curves, outcome.curves.assign(**labels, **place.made_with))
    run_facts = {
        **labels,
        "networks": " ".join(params.networks),
        "seeds": len(params.seeds),
        "diverged": len(study.networks) * len(params.seeds) - len(outcome.members),
        **{name: numbers[name] for name in ("iterations", "batch", "learning_rate", "weight_decay")},
        **{name: testing[name] for name in ("sequences", "sequences_along")},
        "coordinates": task.scale,
    }
    provenance.write_training(snakemake.output.run, run_facts, place)
