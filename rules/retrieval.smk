# Our addition, of no paper: does the structural prior tell which label a network copies? The networks are those of
# rules/emergence.smk with a causal mask, trained anew with several slopes of the decay mask. Out:
# results/retrieval/{study}/depth{depth}/ with their weights, and one table of what they name and rollout predicts.
#
# And: where must a passage stand so that a pretrained decoder finds it? The decoders are those of structural.pretrained. Out:
# results/recall/{model}/{checkpoint}/n{words}.safetensors, where {checkpoint} is hub or copy0, a copy with random weights.

RETRIEVAL = config["retrieval"]
RECALL = RETRIEVAL["recall"]
RECALLED = "results/recall/{model}/{checkpoint}/n{words}.safetensors"


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
        seeds=[*range(RETRIEVAL["seeds"])],
        training=EMERGENCE["training"] | {"iterations": RETRIEVAL["iterations"]},
        testing={"every": RETRIEVAL["iterations"]}
        | dict.fromkeys(["sequences_along", "sequences"], EMERGENCE["task"]["items"]),


rule retrieval_recall:
    """Ask a pretrained decoder, or a copy with random weights, what followed a repeated passage, at every place of it."""
    input:
        model="results/hub/{model}.json",
        texts=f"results/corpus/{PRIMARY}/test.parquet",
    output:
        RECALLED,
    wildcard_constraints:
        model=any_of(PRETRAINED["models"]),
        checkpoint="hub|copy0",
        words=any_of(map(str, RECALL["words"])),
    conda:
        "../envs/language-models.yaml"
    resources:
        **OF_HUB_MODEL,
    params:
        contexts=lambda wildcards: RECALL["contexts" if wildcards.checkpoint == "hub" else "contexts_of_copies"],
        cue=RECALL["cue"],
        initializer_range=lambda wildcards: (
            None if wildcards.checkpoint == "hub" else PRETRAINED["models"][wildcards.model]
        ),
        positions=positions,
        tokens_per_batch=config["measure"]["tokens_per_batch"],
        gpus=lambda wildcards: hub_model(wildcards)["gpus"],
        seed=config["seed"],
    script:
        "../scripts/retrieval/recall.py"


# Figures and tables: a row each, see rules/made.smk.

recalled_by = lambda models: {
    "recalled": collect(RECALLED, model=models, checkpoint=["hub", "copy0"], words=RECALL["words"]),
    "profiles": collect(PRETRAINED_TABLE, model=models, table="profiles"),
}
TO_RECALL = INTERVALS | {"level": RETRIEVAL["level"]}
FIGURES |= {
    "retrieval/prior": made.Made(
        "Gaps and profiles that rollout predicts, beside the labels that networks name (our addition).",
        "retrieval.figures:prior",
        {"table": "results/retrieval/profiles.parquet"},
        {"level": RETRIEVAL["level"]},
    ),
    "retrieval/decoders": made.Made(
        "Recall and influence by place in pretrained decoders: three measures (our addition).",
        "retrieval.figures_decoders:measures",
        {"profiles": "results/recall/profiles.csv"},
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
    "retrieval/checks": made.Made(
        "Verdicts on what we claim of rollout and retrieval.",
        "retrieval.checks:verdicts",
        {
            "profiles": "results/retrieval/profiles.parquet",
            "evidence": evidence_tables("retrieval/*/profiles.csv"),
            "recalled": ["results/recall/values.csv", *evidence_tables("retrieval/*/recall.csv")],
            "predicted": project("published/predictions.csv"),
        },
        {"level": RETRIEVAL["level"], "scale": config["scale"]},
        readable="verdicts.verdict:readable",
    ),
}
FILES |= {
    "retrieval_profiles": made.Made(
        "By position: how often every network names the label there, and the share that rollout predicts.",
        "retrieval.profiles:of_trainings",
        {"weights": collect("results/retrieval/{run}/weights.safetensors", run=RETRIEVAL["networks"])},
        {"task": EMERGENCE["task"], "drawn": RETRIEVAL["sequences"]},
        outputs={"parquet": "results/retrieval/profiles.parquet"},
        environment="synthetic",
        needs={"mem_mb": memory(2000), "runtime": 60},
    ),
    "retrieval_decoders": made.Made(
        "What pretrained decoders recall of each place, as tables: what is judged, and what is drawn.",
        "retrieval.decoders:tables",
        recalled_by(PRETRAINED["models"]),
        TO_RECALL,
        outputs={name: f"results/recall/{name}.csv" for name in ("values", "profiles")},
        needs={"mem_mb": memory(1000), "runtime": 10},
    ),
    "retrieval_evidence_recall": made.Made(
        "What pretrained decoders and their copies recall of each place.",
        "retrieval.decoders:tables",
        recalled_by(EVIDENCE["pretrained"]),
        TO_RECALL,
        outputs={"values": "results/evidence/retrieval/{group}/recall.csv"},
        log="logs/evidence/retrieval/{group}_recall.log",
    ),
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
