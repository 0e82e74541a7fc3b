# Zsamboki et al. 2025: norms after attention, and sequences longer than those of training. Out: results/postnorm/ with
# tests of the trained networks by length, a task a folder, and the experiments that vary width, averaged weights and
# learning rate. A killed training resumes from checkpoints/postnorm/.

from position_bias.postnorm import runs as postnorm_runs

POSTNORM = config["postnorm"]
TRIALS = postnorm_runs.experiments(POSTNORM)
COMPLEMENTS, LANGUAGES = POSTNORM["set_complement"]["lengths"], POSTNORM["languages"]["lengths"]
TESTS = "results/postnorm/{task}/tests.parquet"
# The params of a rule that trains all of one experiment.
experiment_params = lambda name, **others: {"experiment": name, "trials": TRIALS[name], "run_facts": {}} | others


wildcard_constraints:
    task=any_of([*COMPLEMENTS, *LANGUAGES]),


rule postnorm_train:
    """Train networks of every scheme of norms on short sequences of a task, and test them on longer ones."""
    output:
        tests=TESTS,
        history="results/postnorm/{task}/history.parquet",
        run="results/postnorm/{task}/run.csv",
    log:
        "logs/postnorm/{task}.log",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("postnorm"),
    params:
        experiment="{task}",
        trials=lambda wildcards: TRIALS[wildcards.task],
        labels={},
        run_facts=lambda wildcards: postnorm_runs.record(POSTNORM, wildcards.task),
    script:
        "../scripts/postnorm/train.py"


use rule postnorm_train as postnorm_train_widths with:
    """Train the minimal transformer with widths around v - 1."""
    output:
        tests="results/postnorm/dimension.parquet",
    log:
        "logs/postnorm/dimension.log",
    params:
        **experiment_params("dimension"),


use rule postnorm_train as postnorm_train_depth with:
    """Train on brackets of little depth, and test on deeper ones of the same length."""
    output:
        depths="results/postnorm/depth.parquet",
    log:
        "logs/postnorm/depth.log",
    params:
        **experiment_params("depth"),


use rule postnorm_train as postnorm_train_averages with:
    """Train the minimal transformer, and one for deterministic tasks; test last weights, their EMA and their BEMA."""
    output:
        averages="results/postnorm/averaging/tests.parquet",
        run="results/postnorm/averaging/run.csv",
    log:
        "logs/postnorm/averaging.log",
    params:
        **experiment_params("averaging", run_facts=postnorm_runs.record(POSTNORM, "averaging")),


use rule postnorm_train as postnorm_train_stability with:
    """Follow losses and gradients of shallow and deep networks without warmup, at several learning rates."""
    output:
        losses="results/postnorm/stability.parquet",
    log:
        "logs/postnorm/stability.log",
    params:
        **experiment_params("stability"),


use rule postnorm_train as postnorm_sweep with:
    """Distances at trained lengths for several learning rates, on seeds of their own: what the configuration's come from."""
    output:
        distances="results/evidence/postnorm/learning_rates.csv",
    log:
        "logs/evidence/postnorm/learning_rates.log",
    params:
        **experiment_params("sweep", labels={"scale": config["scale"]}),


use rule postnorm_train as postnorm_sweep_stability with:
    """Losses without warmup for several learning rates, on seeds of their own: whether those of stability surround the best."""
    output:
        settled="results/evidence/postnorm/stability_rates.csv",
    log:
        "logs/evidence/postnorm/stability_rates.log",
    params:
        **experiment_params("sweep_stability", labels={"scale": config["scale"]}),


# Figures and tables: a row each, see rules/rows.smk.

POSTNORM_LEVEL = {"level": config["postnorm"]["level"]}

FIGURES |= {
    "postnorm/set_complement": Row(
        "Set Complement Task: distance to the target against the tokens present, for every scheme, with the laws.",
        "postnorm.figures:set_complement",
        {"tests": collect(TESTS, task=COMPLEMENTS)},
        POSTNORM_LEVEL,
    ),
    "postnorm/resharpening": Row(
        "Resharpening, Section 4.3: logit gaps by the law that they follow, and dispersion of attention.",
        "postnorm.figures:resharpening",
        {"tests": collect(TESTS, task=COMPLEMENTS)},
        POSTNORM_LEVEL,
    ),
    "postnorm/construction": Row(
        "Section 4.3 (our addition): networks that are built by hand follow both laws of the gap.",
        "postnorm.figures:construction",
        {"table": "results/postnorm/construction.csv"},
    ),
    "postnorm/dimension": Row(
        "Width d >= v - 1, Section 4.2: distance against the width of the minimal transformer.",
        "postnorm.figures:dimension",
        {"table": "results/postnorm/dimension.parquet"},
        POSTNORM_LEVEL,
    ),
    "postnorm/bema": Row(
        "Averages, Section 4.5: last weights, EMA and BEMA.",
        "postnorm.figures:bema",
        {"table": "results/postnorm/averaging/tests.parquet"},
        POSTNORM_LEVEL,
    ),
    "postnorm/formal_languages": Row(
        "Maximum retrieval, Dyck and Tomita languages: distance and ROC AUC by length.",
        "postnorm.figures:formal_languages",
        {"tests": collect(TESTS, task=LANGUAGES)},
        POSTNORM_LEVEL,
    ),
    "postnorm/stability": Row(
        "Stability (our addition): losses and gradients of every scheme without warmup.",
        "postnorm.figures:stability",
        {"table": "results/postnorm/stability.parquet"},
    ),
}
TABLES |= {
    "postnorm/checks": Row(
        "Verdicts on norms after attention: lengths, laws, widths, averages, languages, stability.",
        "postnorm.checks:scheme_checks",
        {
            "tests": [
                *collect(TESTS, task=COMPLEMENTS),
                *collect(TESTS, task=LANGUAGES),
            ],
            "dimension": "results/postnorm/dimension.parquet",
            "depth": "results/postnorm/depth.parquet",
            "averaging": "results/postnorm/averaging/tests.parquet",
            "stability": "results/postnorm/stability.parquet",
            "predicted": project("published/predictions.csv"),
        },
        POSTNORM_LEVEL | {"scale": config["scale"]},
        readable="verdicts.judge:readable",
    ),
}
FILES |= {
    "postnorm_construct": Row(
        "Test the network that is built by hand.",
        "postnorm.construction:distances",
        values={
            "v": POSTNORM["construction"]["vocabulary"],
            "strength": POSTNORM["construction"]["strength"],
            "sequences": POSTNORM["test_sequences"],
            "seed": config["seed"],
        },
        outputs={"csv": "results/postnorm/construction.csv"},
        environment="synthetic",
    ),
    "postnorm_evidence": Row(
        "Tests by length of the networks of long trainings.",
        "postnorm.checks:evidence",
        {
            "tests": collect(TESTS, task=EVIDENCE["postnorm"]),
            "runs": collect("results/postnorm/{task}/run.csv", task=EVIDENCE["postnorm"]),
        },
        {"scale": config["scale"]},
        outputs={
            "tests": "results/evidence/postnorm/{group}/tests.csv",
            "runs": "results/evidence/postnorm/{group}/runs.csv",
        },
        log="logs/evidence/postnorm/{group}.log",
    ),
}


rule postnorm:
    """Every figure and table of Zsamboki et al. 2025."""
    input:
        wing_outputs("postnorm"),
