# Our addition, of no paper: does the structural prior tell which label a network copies? The networks are those of
# rules/emergence.smk with a causal mask, trained anew with several slopes of the decay mask. Out:
# results/retrieval/{study}/depth{depth}/ with their weights, and one table of what they name and rollout predicts.

RETRIEVAL = config["retrieval"]


use rule emergence_train as retrieval_train with:
    """Train the networks of a study at one depth, with every encoding and slope, every seed of them."""
    output:
        weights="results/retrieval/{study}/depth{depth}/weights.safetensors",
        run="results/retrieval/{study}/depth{depth}/run.csv",
    log:
        "logs/retrieval/{study}/depth{depth}.log",
    resources:
        **training("retrieval", minutes="emergence"),
    params:
        stage="retrieval",
        checkpoints="retrieval/{study}/depth{depth}",
        vocabulary="gaussian",
        decay=0,  # every decay mask has a slope of its own
        networks=lambda wildcards: [
            f"causal/{name}" for name in RETRIEVAL["networks"][f"{wildcards.study}/depth{wildcards.depth}"]
        ],
        seeds=RETRIEVAL["seeds"],
        training=EMERGENCE["training"] | {"iterations": RETRIEVAL["iterations"]},
        testing={"every": RETRIEVAL["iterations"]}
        | dict.fromkeys(["sequences_along", "sequences"], EMERGENCE["task"]["items"]),


rule retrieval_profiles:
    """By position: how often every network names the label there, and the share that rollout predicts."""
    input:
        weights=collect("results/retrieval/{run}/weights.safetensors", run=RETRIEVAL["networks"]),
    output:
        "results/retrieval/profiles.parquet",
    conda:
        "../envs/synthetic.yaml"
    resources:
        mem_mb=memory(2000),
        runtime=60,
    params:
        task=config["emergence"]["task"],
        sequences=RETRIEVAL["sequences"],
    script:
        "../scripts/retrieval/profiles.py"


# Figures and tables: a row each, see rules/made.smk.

FIGURES |= {
    "retrieval/prior": made.Made(
        "Gaps and profiles that rollout predicts, beside the labels that networks name (our addition).",
        "retrieval.figures:prior",
        {"table": "results/retrieval/profiles.parquet"},
        {"level": RETRIEVAL["level"]},
    ),
}
TABLES |= {
    "retrieval/predictors": made.Made(
        "Every predictor of the label that is named: order, distance, sign, and the slope at which the gap changes sign.",
        "retrieval.tables:predictors",
        {"profiles": "results/retrieval/profiles.parquet"},
        {"level": RETRIEVAL["level"]},
        readable="retrieval.tables:readable",
    ),
}
TABLES |= {
    "retrieval/checks": made.Made(
        "Verdicts on what we claim of rollout and retrieval.",
        "retrieval.checks:verdicts",
        {
            "profiles": "results/retrieval/profiles.parquet",
            "evidence": evidence_tables("retrieval/*/profiles.csv"),
            "predicted": project("published/predictions.csv"),
        },
        {"level": RETRIEVAL["level"], "scale": config["scale"]},
        readable="verdicts.verdict:readable",
    ),
}
FILES |= {
    "retrieval_evidence": made.Made(
        "Profiles of networks that are trained for long.",
        "retrieval.tables:evidence",
        {
            "profiles": "results/retrieval/profiles.parquet",
            "runs": collect("results/retrieval/{run}/run.csv", run=EVIDENCE["retrieval"]),
        },
        {"studies": EVIDENCE["retrieval"], "scale": config["scale"]},
        outputs={
            "profiles": "results/evidence/retrieval/{group}/profiles.csv",
            "runs": "results/evidence/retrieval/{group}/runs.csv",
        },
        log="logs/evidence/retrieval/{group}.log",
    ),
}


rule retrieval:
    """Every figure and table on retrieval (our addition)."""
    input:
        of_wing("retrieval"),
