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
        parts={
            part: config["postnorm"][part] for part in ("set_complement", "languages")
        },
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


rule postnorm_draw_set_complement:
    """Set Complement Task: distance to the target against the tokens present, for every scheme, with the laws."""
    input:
        tests=postnorm_tests("tests.parquet", "set_complement"),
    output:
        **drawn("postnorm/set_complement"),
    params:
        level=config["postnorm"]["level"],
    script:
        "../scripts/postnorm/draw_set_complement.py"


rule postnorm_draw_resharpening:
    """Resharpening, Section 4.3: logit gaps by the law that they follow, and dispersion of attention."""
    input:
        tests=postnorm_tests("tests.parquet", "set_complement"),
    output:
        **drawn("postnorm/resharpening"),
    params:
        level=config["postnorm"]["level"],
    script:
        "../scripts/postnorm/draw_resharpening.py"


rule postnorm_draw_dimension:
    """Width d >= v - 1, Section 4.2: distance against the width of the minimal transformer."""
    input:
        table="results/postnorm/dimension.parquet",
    output:
        **drawn("postnorm/dimension"),
    params:
        level=config["postnorm"]["level"],
    script:
        "../scripts/postnorm/draw_dimension.py"


rule postnorm_draw_bema:
    """Averages, Section 4.5: last weights, EMA and BEMA."""
    input:
        table="results/postnorm/averaging/tests.parquet",
    output:
        **drawn("postnorm/bema"),
    params:
        level=config["postnorm"]["level"],
    script:
        "../scripts/postnorm/draw_bema.py"


rule postnorm_draw_formal_languages:
    """Maximum retrieval, Dyck and Tomita languages: distance and ROC AUC by length."""
    input:
        tests=postnorm_tests("tests.parquet", "languages"),
    output:
        **drawn("postnorm/formal_languages"),
    params:
        level=config["postnorm"]["level"],
    script:
        "../scripts/postnorm/draw_formal_languages.py"


rule postnorm_draw_stability:
    """Stability (our addition): losses and gradients of every scheme without warmup."""
    input:
        table="results/postnorm/stability.parquet",
    output:
        **drawn("postnorm/stability"),
    script:
        "../scripts/postnorm/draw_stability.py"


rule postnorm_checks:
    """Verdicts on norms after attention: lengths, laws, widths, averages, languages, stability."""
    input:
        tests=[
            *postnorm_tests("tests.parquet", "set_complement"),
            *postnorm_tests("tests.parquet", "languages"),
        ],
        construction="results/postnorm/construction.csv",
        dimension="results/postnorm/dimension.parquet",
        depth="results/postnorm/depth.parquet",
        averaging="results/postnorm/averaging/tests.parquet",
        stability="results/postnorm/stability.parquet",
        predictions=project("published/predictions.csv"),
    output:
        **tabled("postnorm/checks"),
    params:
        level=config["postnorm"]["level"],
        scale=config["scale"],
    script:
        "../scripts/postnorm/checks.py"


rule postnorm_evidence:
    """Tests by length of the networks of long trainings."""
    input:
        tests=evidence_postnorm("tests.parquet"),
        runs=evidence_postnorm("run.csv"),
    output:
        tests="results/evidence/postnorm/{group}/tests.csv",
        runs="results/evidence/postnorm/{group}/runs.csv",
    log:
        "logs/evidence/postnorm/{group}.log",
    params:
        scale=config["scale"],
    script:
        "../scripts/postnorm/evidence.py"


rule postnorm:
    """Every figure and table of Zsamboki et al. 2025."""
    input:
        rules.postnorm_checks.output,
        rules.postnorm_draw_set_complement.output,
        rules.postnorm_draw_resharpening.output,
        rules.postnorm_draw_dimension.output,
        rules.postnorm_draw_bema.output,
        rules.postnorm_draw_formal_languages.output,
        rules.postnorm_draw_stability.output,
