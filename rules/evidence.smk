# Runs that are too long for every day, kept as small tables. In: what the section `evidence` of the configuration names.
# Out: results/evidence/{paper}/{group}/, tidy CSV with the columns of results/, their scale, and runs.csv, which says what
# made them. evidence/README.md has the command of each group.


wildcard_constraints:
    group=re.escape(EVIDENCE["group"] or "") or "(?!)",


EVIDENCE_SINKS = [  # of the studies that figures show the sinks of
    study
    for study in EVIDENCE["emergence"]
    if study
    in [f"{vocabulary}/{name}/depth{SHALLOW}" for vocabulary, name in OF_SINKS.values()]
]


rule emergence_evidence:
    """Gaps, accuracy and loss at every test of long trainings, and the accuracy by position at their end."""
    input:
        library=library("emergence_evidence.py"),
        curves=evidence_emergence("curves.parquet"),
        runs=evidence_emergence("run.csv"),
    output:
        curves="results/evidence/emergence/{group}/curves.csv",
        accuracy="results/evidence/emergence/{group}/accuracy.csv",
        runs="results/evidence/emergence/{group}/runs.csv",
    log:
        "logs/evidence/emergence/{group}.log",
    benchmark:
        "results/benchmarks/evidence/emergence/{group}.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/emergence_evidence.py"


rule emergence_evidence_sinks:
    """Attention sinks of the networks of long trainings, at every threshold."""
    input:
        library=library("emergence_evidence_sinks.py"),
        sinks=evidence_emergence("sinks.parquet", EVIDENCE_SINKS),
    output:
        "results/evidence/emergence/{group}/sinks.csv",
    log:
        "logs/evidence/emergence/{group}_sinks.log",
    benchmark:
        "results/benchmarks/evidence/emergence/{group}_sinks.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/emergence_evidence_sinks.py"


rule postnorm_evidence:
    """Tests by length of the networks of long trainings."""
    input:
        library=library("postnorm_evidence.py"),
        tests=evidence_postnorm("tests.parquet"),
        runs=evidence_postnorm("run.csv"),
    output:
        tests="results/evidence/postnorm/{group}/tests.csv",
        runs="results/evidence/postnorm/{group}/runs.csv",
    log:
        "logs/evidence/postnorm/{group}.log",
    benchmark:
        "results/benchmarks/evidence/postnorm/{group}.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/postnorm_evidence.py"


rule structural_evidence:
    """What is measured and predicted of language models at every kept step of long trainings, and their losses."""
    input:
        library=library("structural_evidence.py"),
        profiles=evidence_rungs(rollouts("profiles.parquet", PRIMARY, STANDARD)),
        statistics=evidence_rungs(rollouts("statistics.parquet", PRIMARY, STANDARD)),
        mixing=evidence_rungs(*measured("lambda", [STANDARD])),
        content=evidence_rungs(*measured("content", [STANDARD])),
        losses=evidence_structural("loss.csv"),
        runs=evidence_structural("run.csv"),
    output:
        profiles="results/evidence/structural/{group}/profiles.csv",
        statistics="results/evidence/structural/{group}/statistics.csv",
        mixing="results/evidence/structural/{group}/lambda.csv",
        content="results/evidence/structural/{group}/content.csv",
        losses="results/evidence/structural/{group}/losses.csv",
        runs="results/evidence/structural/{group}/runs.csv",
    log:
        "logs/evidence/structural/{group}.log",
    benchmark:
        "results/benchmarks/evidence/structural/{group}.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/structural_evidence.py"


rule evidence:
    """Tables of one group of long trainings, to be kept in evidence/."""
    input:
        evidence_tables,
