# Zsamboki et al. 2025: norms after attention, and sequences longer than those of training. Out: results/postnorm/ with
# tests of the trained networks by length, a task a folder, and the experiments that vary width, averaged weights and
# learning rate. A killed training resumes from checkpoints/postnorm/.


include: "files/postnorm.smk"


wildcard_constraints:
    task="|".join(map(re.escape, POSTNORM_TASKS)),


rule postnorm_train:
    """Train networks of every scheme of norms on short sequences of a task, and test them on longer ones."""
    output:
        tests="results/postnorm/{task}/tests.parquet",
        history="results/postnorm/{task}/history.parquet",
        run="results/postnorm/{task}/run.csv",
    log:
        "logs/postnorm/{task}.log",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("postnorm"),
    params:
        length=lambda wildcards: postnorm_length(wildcards.task),
        numbers=lambda wildcards: postnorm_settings(wildcards.task),
        common=POSTNORM_COMMON,
    script:
        "../scripts/postnorm/train.py"


rule postnorm_train_widths:
    """Train the minimal transformer with widths around v - 1."""
    output:
        "results/postnorm/dimension.parquet",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("postnorm"),
    params:
        numbers=config["postnorm"]["dimension"],
        length=postnorm_length(WIDTHS_OF),
        minimal=postnorm_settings(WIDTHS_OF),
        common=POSTNORM_COMMON,
    script:
        "../scripts/postnorm/train_widths.py"


rule postnorm_train_depth:
    """Train on brackets of little depth, and test on deeper ones of the same length."""
    output:
        "results/postnorm/depth.parquet",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("postnorm"),
    params:
        depth=config["postnorm"]["depth"],
        languages={
            name: config["postnorm"]["languages"][name]
            for name in ("size", "batch", "iterations", "learning_rate", "seeds")
        },
        common=POSTNORM_COMMON,
    script:
        "../scripts/postnorm/train_depth.py"


rule postnorm_train_averages:
    """Train the minimal transformer, and one for deterministic tasks; test last weights, their EMA and their BEMA."""
    output:
        tests="results/postnorm/averaging/tests.parquet",
        run="results/postnorm/averaging/run.csv",
    log:
        "logs/postnorm/averaging.log",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("postnorm"),
    params:
        numbers=config["postnorm"]["averaging"],
        languages={
            "size": config["postnorm"]["languages"]["size"],
            "lengths": {
                task: config["postnorm"]["languages"]["lengths"][task]
                for task in config["postnorm"]["averaging"]["deterministic"]
            },
        },
        common=POSTNORM_COMMON,
    script:
        "../scripts/postnorm/train_averages.py"


rule postnorm_train_stability:
    """Follow losses and gradients of shallow and deep networks without warmup, at several learning rates."""
    output:
        "results/postnorm/stability.parquet",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("postnorm"),
    params:
        numbers=config["postnorm"]["stability"],
        lengths=config["postnorm"]["set_complement"]["lengths"],
        batch=config["postnorm"]["set_complement"]["batch"],
        common=POSTNORM_COMMON,
    script:
        "../scripts/postnorm/train_stability.py"


rule postnorm_construct:
    """Test the network that is built by hand."""
    output:
        "results/postnorm/construction.csv",
    conda:
        "../envs/synthetic.yaml"
    params:
        numbers=config["postnorm"]["construction"],
        sequences=config["postnorm"]["test_sequences"],
        seed=config["seed"],
    script:
        "../scripts/postnorm/construct.py"


rule postnorm_sweep:
    """Distances at trained lengths for several learning rates, on seeds of their own: what the configuration's come from."""
    output:
        "results/evidence/postnorm/learning_rates.csv",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("postnorm"),
    params:
        sweep=config["postnorm"]["sweep"],
        parts={part: config["postnorm"][part] for part in ("set_complement", "languages")},
        common=POSTNORM_COMMON,
        scale=config["scale"],
    script:
        "../scripts/postnorm/sweep.py"


rule postnorm_sweep_stability:
    """Losses without warmup for several learning rates, on seeds of their own: whether those of stability surround the best."""
    output:
        "results/evidence/postnorm/stability_rates.csv",
    conda:
        "../envs/synthetic.yaml"
    resources:
        **training("postnorm"),
    params:
        sweep=config["postnorm"]["sweep"]["stability"],
        numbers=config["postnorm"]["stability"],
        lengths=config["postnorm"]["set_complement"]["lengths"],
        batch=config["postnorm"]["set_complement"]["batch"],
        common=POSTNORM_COMMON,
        scale=config["scale"],
    script:
        "../scripts/postnorm/sweep_stability.py"


# Figures and tables: a row each, see rules/made.smk.

POSTNORM_LEVEL = {"level": config["postnorm"]["level"]}

FIGURES |= {
    "postnorm/set_complement": made.Made(
        "Set Complement Task: distance to the target against the tokens present, for every scheme, with the laws.",
        "postnorm.figures:set_complement",
        {"tests": postnorm_tests("tests.parquet", "set_complement")},
        POSTNORM_LEVEL,
    ),
    "postnorm/resharpening": made.Made(
        "Resharpening, Section 4.3: logit gaps by the law that they follow, and dispersion of attention.",
        "postnorm.figures:resharpening",
        {"tests": postnorm_tests("tests.parquet", "set_complement")},
        POSTNORM_LEVEL,
    ),
    "postnorm/dimension": made.Made(
        "Width d >= v - 1, Section 4.2: distance against the width of the minimal transformer.",
        "postnorm.figures:dimension",
        {"table": "results/postnorm/dimension.parquet"},
        POSTNORM_LEVEL,
    ),
    "postnorm/bema": made.Made(
        "Averages, Section 4.5: last weights, EMA and BEMA.",
        "postnorm.figures_training:bema",
        {"table": "results/postnorm/averaging/tests.parquet"},
        POSTNORM_LEVEL,
    ),
    "postnorm/formal_languages": made.Made(
        "Maximum retrieval, Dyck and Tomita languages: distance and ROC AUC by length.",
        "postnorm.figures_training:formal_languages",
        {"tests": postnorm_tests("tests.parquet", "languages")},
        POSTNORM_LEVEL,
    ),
    "postnorm/stability": made.Made(
        "Stability (our addition): losses and gradients of every scheme without warmup.",
        "postnorm.figures_training:stability",
        {"table": "results/postnorm/stability.parquet"},
    ),
}
TABLES |= {
    "postnorm/checks": made.Made(
        "Verdicts on norms after attention: lengths, laws, widths, averages, languages, stability.",
        "postnorm.checks:checks",
        {
            "tests": [
                *postnorm_tests("tests.parquet", "set_complement"),
                *postnorm_tests("tests.parquet", "languages"),
            ],
            "construction": "results/postnorm/construction.csv",
            "dimension": "results/postnorm/dimension.parquet",
            "depth": "results/postnorm/depth.parquet",
            "averaging": "results/postnorm/averaging/tests.parquet",
            "stability": "results/postnorm/stability.parquet",
            "predicted": project("published/predictions.csv"),
        },
        POSTNORM_LEVEL | {"scale": config["scale"]},
        readable="verdicts.verdict:readable",
    ),
}
FILES |= {
    "postnorm_evidence": made.Made(
        "Tests by length of the networks of long trainings.",
        "postnorm.tables:evidence",
        {
            "tests": evidence_postnorm("tests.parquet"),
            "runs": evidence_postnorm("run.csv"),
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
        of_wing("postnorm"),
