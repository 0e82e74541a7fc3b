# Herasimchyk et al. 2026. Predictions and their distance to the measurement. In: results/measure/.../. Out, under the same path below
# results/rollout/: profiles.parquet (every variant with its interval), statistics.parquet, and the bootstrap replicates of
# the statistics, from which verdicts on differences are drawn.
#
# Pretrained decoders and copies of them with random weights are measured by a rule of their own, on as many prompts as
# structural.pretrained says. Out: the same files in results/measure/, where {checkpoint} is hub, copy{seed}, or usual{seed} where the
# weights have the deviation of the library; results/replaced/{model}/hub.safetensors, what replacing single tokens changes;
# results/moved/{model}/{checkpoint}/n{n}.safetensors, what changes as text moves towards another; results/recall/{model}/n{n}.safetensors, what the decoder recalls of each place in a context of so many tokens;
# results/pretrained/{model}/ and results/recall/, tables of what is judged and drawn.

OF_FIGURES = {  # Figures 1 and 2 of the paper -> the measured models that each shows
    "fig1": [model for model in config["structural"]["fig1"] if model in MODELS],
    "fig2": [model for model in MODELS if model not in config["structural"]["fig1"]],
}
STRUCTURAL_EVIDENCE = {  # what the figure of a longer training shows -> its file below evidence/structural/
    "profiles": "profiles",
    "statistics": "statistics",
    "mixing": "lambda",
    "content": "content",
    "losses": "losses",
}
PROFILES, STATISTICS, REPLICATES = (
    f"results/rollout/{{run}}/{{dataset}}/n{{n}}/{table}.parquet" for table in ("profiles", "statistics", "replicates")
)
OF_RUN = "results/measure/{run}/{dataset}/n{n}.safetensors"
LOSSES = "results/models/{training}/loss.csv"
TRAINING_RUNS = "results/models/{training}/run.csv"
AT_STANDARD = {"dataset": PRIMARY, "n": STANDARD}
EVERYWHERE = {"dataset": DATASETS, "run": checkpoints(MODELS)}  # every measured model at the end of its training
PRETRAINED_PROMPTS = PRETRAINED["prompts"]
GROUPS = 32  # of documents, resampled where rollouts are compared with influence
OF_PRETRAINED = [  # data set, tokens, prompts, groups of documents whose means of attention are kept
    (PRIMARY, HEATMAP, PRETRAINED_PROMPTS["heatmap"], 0),
    (PRIMARY, STANDARD, PRETRAINED_PROMPTS["standard"], GROUPS),
    *([(PRIMARY, LONG, PRETRAINED_PROMPTS["long"], 0)] if PRETRAINED_PROMPTS["long"] else []),
    *((dataset, STANDARD, PRETRAINED_PROMPTS["elsewhere"], 0) for dataset in DATASETS if dataset != PRIMARY),
]
OF_COPIES = [(PRIMARY, STANDARD, PRETRAINED_PROMPTS["copies"], 0)]
COPIES = [*(f"copy{seed}" for seed in range(PRETRAINED["copies"])), "usual0"]
USUAL = 0.02  # initializer_range, where a configuration does not say another
PRETRAINED_TABLE = "results/pretrained/{model}/{table}.csv"
REPLACED = "results/replaced/{model}/{checkpoint}.safetensors"
CURVE = config["structural"]["curve"]
MOVED = "results/moved/{model}/{checkpoint}/n{n}.safetensors"
MOVED_COPIES = [f"copy{seed}" for seed in range(CURVE["copies"])]
moved_in = lambda models: collect(MOVED, model=models, checkpoint=["hub", *MOVED_COPIES], n=CURVE["tokens"])
RECALL = config["structural"]["recall"]
RECALLED = "results/recall/{model}/n{n}.safetensors"
recalled_by = lambda models: {
    "recalled": collect(RECALLED, model=models, n=RECALL["tokens"]),
    "profiles": collect(PRETRAINED_TABLE, model=models, table="profiles"),
}
INITIALIZATION = config["structural"]["initialization"]
AT_INITIALIZATION = "results/initialization/{model}"
initialized = lambda models: collect(f"{AT_INITIALIZATION}/values.csv", model=models)
INITIALIZED = (  # of this run where it measures some, else those of evidence/
    initialized(PRETRAINED["models"])
    if INITIALIZATION["layers"]
    else evidence_tables("structural/*/initialization.csv")
)
SINK = config["structural"]["sink"]
OF_SINK = "results/sink/{model}"
measured_of = lambda asked, checkpoint: [
    f"results/measure/{{model}}/{checkpoint}/{dataset}/n{n}.safetensors" for dataset, n, *_ in asked
]
RUNGS = {"run": checkpoints(EVIDENCE["structural"], STEPS)} | AT_STANDARD  # what is kept of longer trainings


# Figures, tables and what they are made from: a row each, see rules/rows.smk.

FIGURES |= {
    f"structural/{figure}": Row(
        "Figures 1, 2: rollout variants (a), (b), (c) beside the measured influence (d).",
        "structural.figures:fig1",
        {"profiles": collect(PROFILES, run=checkpoints(models), **AT_STANDARD)},
        caption="structural/draw_fig1",
    )
    for figure, models in OF_FIGURES.items()
    if models
}
if TRAINED:
    FIGURES["structural/training"] = Row(
        "What training does to the profile: measured influence and (b) at every kept step (our addition).",
        "structural.figures:training",
        {"profiles": collect(PROFILES, run=checkpoints(TRAINED, STEPS), **AT_STANDARD)},
    )
FIGURES |= {
    "structural/fig3": Row(
        "Figure 3: measured influence at the long length, every model and data set.",
        "structural.figures:fig3",
        {"profiles": collect(PROFILES, **EVERYWHERE, n=LONG)},
    ),
    "structural/fig4": Row(
        "Figure 4: residual mixing across layers, and by how much data sets and estimators differ.",
        "structural.figures:fig4",
        {"measured": collect(OF_RUN, **EVERYWHERE, n=STANDARD)},
    ),
    "structural/fig5": Row(
        "Figure 5: mean content logits of representative layers and heads, one seed of each model.",
        "structural.figures:fig5",
        {"measured": collect(OF_RUN, run=[checkpoints([model])[0] for model in MODELS], dataset=PRIMARY, n=HEATMAP)},
    ),
    "structural/long_training": Row(
        "Influence, residual mixing, content and distances at steps of a longer training, from evidence/ (our addition).",
        "structural.figures_long_training:long_training",
        {name: project(f"evidence/structural/language-model/{file}.csv") for name, file in STRUCTURAL_EVIDENCE.items()},
    ),
    "structural/forces": Row(
        "Propositions 4.2-4.5: what depth, residual mixing, positional bias and diagonal content do to early tokens' share.",
        "structural.figures:forces",
        {"table": "results/theory/forces.csv"},
    ),
    "structural/three_measures": Row(
        "The first eighth of a prompt by three measures in pretrained decoders and copies with random weights (our addition).",
        "structural.figures_curve:three_measures",
        {"table": "results/tables/structural/curve.csv"},
        {"n": CURVE["tokens"][0]},
    ),
    "structural/curve": Row(
        "Primacy in pretrained decoders as text moves further towards another, by the size of the step (our addition).",
        "structural.figures_curve:curve",
        {"table": "results/tables/structural/curve.csv"},
        {"n": CURVE["tokens"][0]},
    ),
    "structural/recall": Row(
        "Recall of pretrained decoders by eighth of the context, over its middle half (our addition).",
        "structural.figures_recall:recall",
        {"profiles": "results/recall/profiles.csv"},
    ),
    "structural/dichotomy": Row(
        "Theorem 5.5: what lies beyond the first token against depth, for summable and other schedules of lambda.",
        "structural.figures:dichotomy",
        {"table": "results/theory/dichotomy.csv"},
    ),
}

FIGURES |= {
    "structural/big_models": Row(
        "Figures 1, 2 of the paper's five models, from evidence/: (a), (b), (c), and (d) as its authors drew it.",
        "released.figures:as_released",
        {
            "profiles": project("evidence/structural/released/profiles.csv"),
            "drawn": project("published/structural_curves.csv"),
        },
    ),
    "structural/big_models_mixing": Row(
        "Figure 4 of the paper's five models, from evidence/: residual mixing by depth, and its rank correlation with it.",
        "released.figures:mixing_as_released",
        {
            "mixing": project("evidence/structural/released/mixing.csv"),
            "statistics": project("evidence/structural/released/statistics.csv"),
        },
    ),
}

FIGURES["structural/distances"] = Row(
    "Which rollouts of pretrained decoders are nearer to influence than a uniform profile, and by which lambda (our addition).",
    "structural.figures_distances:distances",
    {"checks": "results/tables/structural/checks.csv"},
)

FIGURES["structural/initialization"] = Row(
    "Influence at initialization by the deviation of random weights, at several depths, beside a closed form (our addition).",
    "structural.figures_initialization:initialization",
    {"values": INITIALIZED},
    {"level": config["rollout"]["level"]},
)

# Figures of rows of checks: of claims that models decide which the default run does not train, by scale.
DECISIVE = {
    "decoders_ends": (
        "Both ends of pretrained decoders, where these decide a claim",
        ["pretrained"],
        "figure-1-d figure-3 pretrained-no-primacy curve-step curve-line curve-eighth",
    ),
    "decoders_rollouts": (
        "Rollouts and recall in pretrained decoders, where these decide a claim",
        ["pretrained"],
        "pretrained-kernel recall-length recall-ranking",
    ),
    "other_models": (
        "Models that were trained for longer, and those of the paper, where these decide a claim",
        ["longer", "paper"],
        "figure-1-minimum untrained table-2-content table-5",
    ),
}
TITLES = {claim.id: claim.title for claim in CLAIMS}
FIGURES |= {
    f"structural/{figure}": Row(
        f"{label}: every comparison, from checks (our addition).",
        "structural.figures_decisive:decisive",
        {"checks": "results/tables/structural/checks.csv"},
        {
            "titles": {f"structural-{claim}": TITLES[f"structural-{claim}"] for claim in claims.split()},
            "scales": scales,
            "label": label,
            "level": config["rollout"]["level"],
        },
        caption="structural/draw_decisive",
    )
    for figure, (label, scales, claims) in DECISIVE.items()
}

OF_DISTANCES = (
    "Tables 2, 3, 4: distance of every rollout variant to the measured influence, with null profiles; Spearman's too."
)
DISTANCES = {
    "table2": collect(STATISTICS, run=checkpoints(MODELS), **AT_STANDARD),
    "table3": collect(STATISTICS, **EVERYWHERE, n=STANDARD),
    "table4": collect(STATISTICS, **EVERYWHERE, n=LONG),
    "spearman": collect(STATISTICS, dataset=DATASETS, n=[STANDARD, *MORE, LONG], run=checkpoints(MODELS)),
}

if TRAINED:
    TABLES["structural/table1"] = Row(
        "Table 1: size of every model, and the loss that it reached.",
        "structural.tables:table1",
        {
            "losses": collect(LOSSES, training=trainings(TRAINED)),
            "models": collect("results/models/{run}", run=checkpoints(TRAINED)),
            "published": project("published/structural_models.csv"),
        },
        {"architectures": {model: config["models"][model]["architecture"] for model in TRAINED}},
        readable="language_models.names:with_shown_names",
    )
TABLES |= {
    f"structural/{table}": Row(
        OF_DISTANCES,
        "structural.tables:distances",
        {
            "statistics": files,
            "published": project("published/structural_distances.csv"),
        },
        {"names": ["spearman", "total variation"] if table == "spearman" else ["wasserstein"], "table": table},
        readable="structural.tables:readable",
        caption="structural/spearman" if table == "spearman" else "structural/table2",
    )
    for table, files in DISTANCES.items()
}
TABLES |= {
    "structural/table5": Row(
        "Table 5: how alike mean content logits are on the diagonal and below it, two ways.",
        "structural.content:table5",
        {"measured": collect(OF_RUN, **EVERYWHERE, n=STANDARD)},
        readable="structural.content:readable_similarity",
        needs={
            "mem_mb": lambda wildcards, input, attempt: (1000 + 2 * max(map(os.path.getsize, input.measured)) // 10**6)
            * attempt
        },
    ),
    "structural/shift": Row(
        "Section 6.1: in how many heads content shifts the diagonal the same way.",
        "structural.content:shift",
        {"measured": collect(OF_RUN, **EVERYWHERE, n=STANDARD)},
        INTERVALS,
        readable="language_models.names:with_shown_names",
    ),
    "structural/monotonicity": Row(
        "Assumption 4.1: violations of stochastic monotonicity, by measured attention and the authors' construction.",
        "structural.content:monotonicity_of_layers",
        {"measured": collect(OF_RUN, **EVERYWHERE, n=STANDARD)},
        readable="structural.content:readable_kernels",
    ),
    "structural/licences": Row(
        "Table 6: licences of the models and texts, the paper's and ours.",
        "structural.tables:licences",
        {"published": project("published/structural_licences.csv")},
    ),
    "structural/propositions": Row(
        "Verdicts on Propositions 4.2-4.5, Lemma 5.4 and Theorem 5.5, and the curves that their figures draw.",
        "structural.checks_theory:proposition_tables",
        {"predicted": project("published/predictions.csv")},
        values={"scale": config["scale"]},
        outputs={
            "forces": "results/theory/forces.csv",
            "dichotomy": "results/theory/dichotomy.csv",
        },
    ),
}

BESIDE = {
    "drawn": project("evidence/structural/released/drawn.csv"),
    "bounds": project("evidence/structural/released/distances.csv"),
}
TABLES |= {
    f"structural/printed_{table}": Row(
        "Tables 2, 3, 4 as printed, beside ours: W of (a), (b) and (c) to the measured influence.",
        "structural.printed_tables:distances",
        BESIDE | {"measured": f"results/tables/structural/{table}.csv"},
        {"table": table, "scale": config["scale"]},
        readable="structural.printed_tables:readable",
        caption="structural/printed_tables",
    )
    for table in ("table2", "table3", "table4")
}
TABLES["structural/printed_table5"] = Row(
    "Table 5 beside ours: similarity of mean content logits; the printed numbers are lost in the text.",
    "structural.printed_tables:table5",
    {
        "similarity": "results/tables/structural/table5.csv",
        "kept": evidence_tables("structural/*/similarity.csv"),
    },
    {"scale": config["scale"]},
    readable="structural.printed_tables:readable",
    caption="structural/printed_tables",
)
if TRAINED:
    TABLES["structural/printed_table1"] = Row(
        "Table 1 as printed, beside ours: depth and parameters of every model.",
        "structural.printed_tables:table1",
        {
            "sizes": "results/tables/structural/table1.csv",
            "mixing": project("evidence/structural/released/mixing.csv"),
        },
        {"scale": config["scale"]},
        readable="structural.printed_tables:readable",
        caption="structural/printed_tables",
    )
TABLES["structural/big_models"] = Row(
    "What the released schedules of the paper's five models decide, from evidence/.",
    "released.shapes:judged_values",
    {"statistics": project("evidence/structural/released/statistics.csv")},
)

TABLES["structural/curve"] = Row(
    "Ratios of both ends to the middle as text moves towards another, by window and step, and of recall (our addition).",
    "structural.curve:curve_table",
    {
        "values": [
            *evidence_tables("structural/*/curve.csv"),  # more donors: they come first where documents are as many
            "results/moved/values.csv",
            "results/recall/values.csv",
            *evidence_tables("structural/*/recall.csv"),
        ]
    },
    {"level": config["rollout"]["level"]},
    readable="structural.curve:readable",
)

TABLES["structural/checks"] = Row(
    "Verdicts: each claim of the paper against what was measured, with its interval.",
    "structural.checks:verdicts",
    {
        "during_training": collect(REPLICATES, run=checkpoints(MODELS, SNAPSHOTS), **AT_STANDARD),
        "at_standard": collect(REPLICATES, **EVERYWHERE, n=STANDARD),
        "at_long": collect(REPLICATES, **EVERYWHERE, n=LONG),
        "at_more": collect(REPLICATES, dataset=DATASETS, n=MORE, run=checkpoints(MODELS)),
        "shift": "results/tables/structural/shift.csv",
        "published": project("published/structural_distances.csv"),
        "curves": project("published/structural_curves.csv"),
        "released": evidence_tables("structural/released/statistics.csv"),
        "pretrained": [
            *collect(PRETRAINED_TABLE, model=PRETRAINED["models"], table="values"),
            *evidence_tables("structural/*/pretrained.csv"),
            "results/recall/values.csv",
            *evidence_tables("structural/*/recall.csv"),
            *collect(f"{OF_SINK}/values.csv", model=SINK["models"]),
            *evidence_tables("structural/*/sink.csv"),
            *evidence_tables("structural/*/curve.csv"),
            "results/moved/values.csv",
        ],
        "pretrained_kernels": collect(PRETRAINED_TABLE, model=PRETRAINED["models"], table="kernels"),
        "initialization": INITIALIZED,
        "long_training": evidence_tables("structural/*/compared.csv"),
        "alike": evidence_tables("structural/*/similarity.csv"),
        "similarity": "results/tables/structural/table5.csv",
        "monotonicity": "results/tables/structural/monotonicity.csv",
        "predicted": project("published/predictions.csv"),
    },
    {
        "primary": PRIMARY,
        "scale": config["scale"],
        "level": config["rollout"]["level"],
    },
    readable="verdicts.judge:readable",
)

ROLLOUT = "{model}/{checkpoint}/{dataset}/n{n}"

FILES |= {
    "rollout": Row(
        "Roll attention out under every variant of Section 6.2 and compare with the measured influence.",
        "position_card.rollout.comparison:comparison_tables",
        {"file": MEASURED},
        INTERVALS,
        outputs={
            name: f"results/rollout/{ROLLOUT}/{name}.parquet" for name in ("profiles", "statistics", "replicates")
        },
        log=f"logs/rollout/{ROLLOUT}.log",
        group="rollouts",
        needs={"mem_mb": memory(2000), "runtime": 20},
    ),
    "structural_pretrained": Row(
        "What was measured of a pretrained decoder and its copies, as tables: what is judged, and what is drawn.",
        "structural.pretrained:pretrained_tables",
        {
            "measured": [
                *measured_of(OF_PRETRAINED, "hub"),
                *(path for name in COPIES for path in measured_of(OF_COPIES, name)),
            ],
            "replaced": "results/replaced/{model}/hub.safetensors",
        },
        {"primary": PRIMARY, "standard": STANDARD} | INTERVALS,
        outputs={name: f"results/pretrained/{{model}}/{name}.csv" for name in ("values", "profiles", "kernels")},
        wildcards={"model": any_of(PRETRAINED["models"])},
        needs={"mem_mb": memory(2000), "runtime": 20},
    ),
    "structural_curve_values": Row(
        "What changes as text moves towards another, in pretrained decoders and copies, by document: what is judged.",
        "structural.curve:curve_tables",
        {"responded": moved_in(PRETRAINED["models"])},
        outputs={"values": "results/moved/values.csv"},
        needs={"mem_mb": memory(1000), "runtime": 10},
    ),
    "structural_evidence_curve": Row(
        "What changes as text moves towards another, in pretrained decoders and copies, by document, and their recall.",
        "structural.curve:curve_tables",
        {
            "responded": moved_in(EVIDENCE["curve"]),
            "recalled": collect(RECALLED, model=EVIDENCE["curve"], n=RECALL["tokens"]),
        },
        {"replicates": INTERVALS["replicates"], "seed": INTERVALS["seed"]},
        outputs={"values": "results/evidence/structural/{group}/curve.csv"},
        log="logs/evidence/structural/{group}_curve.log",
    ),
    "structural_evidence_curve_runs": Row(
        "Which files the pretrained decoders were, and what measured them.",
        "structural.evidence_decoders:runs",
        {"records": collect("results/hub/{model}.json", model=EVIDENCE["curve"])},
        outputs={"runs": "results/evidence/structural/{group}/curve_runs.csv"},
        environment="language-models",
        log="logs/evidence/structural/{group}_curve_runs.log",
    ),
    "structural_recall": Row(
        "What pretrained decoders recall of each place, as tables: what is judged, and what is drawn.",
        "structural.recall:recall_tables",
        recalled_by(PRETRAINED["models"]),
        INTERVALS,
        outputs={name: f"results/recall/{name}.csv" for name in ("values", "profiles")},
        needs={"mem_mb": memory(1000), "runtime": 10},
    ),
    "structural_initialization": Row(
        "Influence in copies of a pretrained decoder with random weights, by deviation and depth, beside a closed form.",
        "structural.initialization:initialization_table",
        {"file": f"{AT_INITIALIZATION}.safetensors"},
        outputs={"table": f"{AT_INITIALIZATION}/values.csv"},
        wildcards={"model": any_of(PRETRAINED["models"])},
        needs={"mem_mb": memory(1000), "runtime": 10},
    ),
    "structural_sink": Row(
        "Three measures of a pretrained decoder with the first token's own norm and with that of others: what is judged.",
        "structural.sink:sink_table",
        {"file": f"{OF_SINK}.safetensors"},
        {"replicates": INTERVALS["replicates"], "seed": INTERVALS["seed"]},
        outputs={"table": f"{OF_SINK}/values.csv"},
        wildcards={"model": any_of(SINK["models"])},
        needs={"mem_mb": memory(1000), "runtime": 10},
    ),
    "structural_evidence": Row(
        "What is measured and predicted of language models at every kept step of long trainings, and their losses.",
        "structural.evidence:evidence",
        {
            "profiles": collect(PROFILES, **RUNGS),
            "statistics": collect(STATISTICS, **RUNGS),
            "replicates": collect(REPLICATES, **RUNGS),
            "measured": collect(OF_RUN, **RUNGS),
            "losses": collect(LOSSES, training=trainings(EVIDENCE["structural"])),
            "runs": collect(TRAINING_RUNS, training=trainings(EVIDENCE["structural"])),
            "predicted": project("published/predictions.csv"),
        },
        {"scale": config["scale"], "level": config["rollout"]["level"]},
        outputs={
            name: f"results/evidence/structural/{{group}}/{file}.csv"
            for name, file in {
                **STRUCTURAL_EVIDENCE,
                "compared": "compared",
                "similarity": "similarity",
                "runs": "runs",
            }.items()
        },
        log="logs/evidence/structural/{group}.log",
    ),
    "structural_evidence_pretrained": Row(
        "Both ends of pretrained decoders and of their copies, by gradients and by replacement, and their rollouts.",
        "structural.evidence_decoders:evidence",
        {
            "values": collect(PRETRAINED_TABLE, model=EVIDENCE["pretrained"], table="values"),
            "records": collect("results/hub/{model}.json", model=EVIDENCE["pretrained"]),
        },
        outputs={
            "values": "results/evidence/structural/{group}/pretrained.csv",
            "runs": "results/evidence/structural/{group}/pretrained_runs.csv",
        },
        environment="language-models",
        log="logs/evidence/structural/{group}_pretrained.log",
    ),
    "structural_evidence_initialization": Row(
        "Influence in copies with random weights, and the files of the decoder whose copies they are.",
        "structural.evidence_decoders:evidence",
        {
            "values": initialized(EVIDENCE["initialization"]),
            "records": collect("results/hub/{model}.json", model=EVIDENCE["initialization"]),
        },
        outputs={
            "values": "results/evidence/structural/{group}/initialization.csv",
            "runs": "results/evidence/structural/{group}/initialization_runs.csv",
        },
        environment="language-models",
        log="logs/evidence/structural/{group}_initialization.log",
    ),
    "structural_evidence_sink": Row(
        "Three measures with the first token's own norm and with that of others, and the files of the decoder.",
        "structural.evidence_decoders:evidence",
        {
            "values": collect(f"{OF_SINK}/values.csv", model=EVIDENCE["sink"]),
            "records": collect("results/hub/{model}.json", model=EVIDENCE["sink"]),
        },
        outputs={
            "values": "results/evidence/structural/{group}/sink.csv",
            "runs": "results/evidence/structural/{group}/sink_runs.csv",
        },
        environment="language-models",
        log="logs/evidence/structural/{group}_sink.log",
    ),
    "structural_evidence_recall": Row(
        "What pretrained decoders recall of each place.",
        "structural.recall:recall_tables",
        {
            "recalled": collect(
                RECALLED, model=list(dict.fromkeys([*EVIDENCE["pretrained"], *EVIDENCE["recall"]])), n=RECALL["tokens"]
            ),
            "profiles": collect(PRETRAINED_TABLE, model=EVIDENCE["pretrained"], table="profiles"),
        },
        INTERVALS,
        outputs={"values": "results/evidence/structural/{group}/recall.csv"},
        log="logs/evidence/structural/{group}_recall.log",
    ),
    "structural_evidence_recall_runs": Row(
        "Which files the pretrained decoders were whose recall is measured alone, and what measured them.",
        "structural.evidence_decoders:runs",
        {"records": collect("results/hub/{model}.json", model=EVIDENCE["recall"])},
        outputs={"runs": "results/evidence/structural/{group}/recall_runs.csv"},
        environment="language-models",
        log="logs/evidence/structural/{group}_recall_runs.log",
    ),
}


rule measure_pretrained:
    """Measure a pretrained decoder at every length and on every data set, and what replacing single tokens changes."""
    input:
        model="results/hub/{model}.json",
        texts=expand("results/corpus/{dataset}/test.parquet", dataset=DATASETS),
    output:
        measured=measured_of(OF_PRETRAINED, "{checkpoint}"),
        replaced=REPLACED,
    wildcard_constraints:
        model=any_of(PRETRAINED["models"]),
        checkpoint="hub",
    conda:
        "../envs/language-models.yaml"
    resources:
        **OF_HUB_MODEL,
    params:
        measured=OF_PRETRAINED,
        replaced=(PRIMARY, STANDARD, PRETRAINED_PROMPTS["replaced"]),
        initializer_range=None,
        positions=positions,
        tokens_per_batch=STANDARD,  # a prompt at once: of several, the backward pass takes gigabytes, and is no faster
        matrices_up_to=config["measure"]["matrices_up_to"],
        gpus=lambda wildcards: hub_model(wildcards)["gpus"],
        seed=config["seed"],
    script:
        "../scripts/structural/measure_pretrained.py"


use rule measure_pretrained as measure_copy with:
    input:
        model="results/hub/{model}.json",
        texts=[f"results/corpus/{PRIMARY}/test.parquet"],
    output:
        measured=measured_of(OF_COPIES, "{checkpoint}"),
    wildcard_constraints:
        model=any_of(PRETRAINED["models"]),
        checkpoint=any_of(COPIES),
    params:
        measured=OF_COPIES,
        replaced=None,
        initializer_range=lambda wildcards: (
            USUAL if wildcards.checkpoint.startswith("usual") else PRETRAINED["models"][wildcards.model]
        ),


rule measure_curve:
    """Measure what a pretrained decoder predicts as text moves a part of the way to that of other documents, by window."""
    input:
        model="results/hub/{model}.json",
        texts=f"results/corpus/{CURVE['dataset']}/test.parquet",
    output:
        MOVED,
    wildcard_constraints:
        model=any_of(PRETRAINED["models"]),
        checkpoint="hub",
        n=any_of(map(str, CURVE["tokens"])),
    conda:
        "../envs/language-models.yaml"
    resources:
        **OF_HUB_MODEL,
    params:
        dataset=CURVE["dataset"],
        documents=CURVE["documents"],
        measured=CURVE["documents"],
        donors=CURVE["donors"],
        steps=CURVE["steps"],
        initializer_range=None,
        positions=positions,
        tokens_per_batch=config["measure"]["tokens_per_batch"],
        gpus=lambda wildcards: hub_model(wildcards)["gpus"],
        seed=config["seed"],
    script:
        "../scripts/structural/measure_curve.py"


use rule measure_curve as measure_curve_of_copy with:
    wildcard_constraints:
        model=any_of(PRETRAINED["models"]),
        checkpoint=any_of(MOVED_COPIES),
        n=any_of(map(str, CURVE["tokens"])),
    params:
        measured=CURVE["documents_of_copies"],
        donors=1,
        steps=[CURVE["steps"][0], CURVE["steps"][-1]],
        initializer_range=lambda wildcards: PRETRAINED["models"][wildcards.model],


rule measure_initialization:
    """Measure influence in copies of the first layers of a pretrained decoder, with random weights of several deviations."""
    input:
        model="results/hub/{model}.json",
        texts=f"results/corpus/{PRIMARY}/test.parquet",
    output:
        f"{AT_INITIALIZATION}.safetensors",
    wildcard_constraints:
        model=any_of(PRETRAINED["models"]),
    conda:
        "../envs/language-models.yaml"
    resources:
        **OF_HUB_MODEL,
    params:
        **INITIALIZATION,
        positions=positions,
        gpus=lambda wildcards: hub_model(wildcards)["gpus"],
        seed=config["seed"],
    script:
        "../scripts/structural/measure_initialization.py"


rule measure_sink:
    """Measure a pretrained decoder with the first token's own norm and with that of others: gradients, replacement, recall."""
    input:
        model="results/hub/{model}.json",
        texts=f"results/corpus/{PRIMARY}/test.parquet",
    output:
        f"{OF_SINK}.safetensors",
    wildcard_constraints:
        model=any_of(SINK["models"]),
    conda:
        "../envs/language-models.yaml"
    resources:
        **OF_HUB_MODEL,
    params:
        tokens=SINK["tokens"],
        documents=SINK["documents"],
        words=SINK["words"],
        contexts=SINK["contexts"],
        cue=RECALL["cue"],
        positions=positions,
        tokens_per_batch=config["measure"]["tokens_per_batch"],
        gpus=lambda wildcards: hub_model(wildcards)["gpus"],
        seed=config["seed"],
    script:
        "../scripts/structural/measure_sink.py"


rule measure_recall:
    """Ask a pretrained decoder what followed a repeated passage, at every place of it."""
    input:
        model="results/hub/{model}.json",
        texts=f"results/corpus/{PRIMARY}/test.parquet",
    output:
        RECALLED,
    wildcard_constraints:
        model=any_of(PRETRAINED["models"]),
        n=any_of(map(str, RECALL["tokens"])),
    conda:
        "../envs/language-models.yaml"
    resources:
        **OF_HUB_MODEL,
    params:
        contexts=RECALL["contexts"],
        cue=RECALL["cue"],
        positions=positions,
        tokens_per_batch=config["measure"]["tokens_per_batch"],
        gpus=lambda wildcards: hub_model(wildcards)["gpus"],
        seed=config["seed"],
    script:
        "../scripts/structural/measure_recall.py"


rule structural:
    """Every figure and table of Herasimchyk et al. 2026."""
    input:
        wing_outputs("structural"),
