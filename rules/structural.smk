# Herasimchyk et al. 2026. Predictions and their distance to the measurement. In: results/measure/.../. Out, under the same path below
# results/rollout/: profiles.parquet (every variant with its interval), statistics.parquet, and the bootstrap replicates of
# the statistics, from which verdicts on differences are drawn.


include: "files/structural.smk"


rule structural_measure_rotary:
    """Measure mixing, influence, attention and kernels of a decoder with rotary positions that was trained here."""
    input:
        model="results/models/{model}/{checkpoint}",
        prompts=f"results/prompts/offline/{PRIMARY}/n{STANDARD}.safetensors",
    output:
        "results/rotary/{model}/{checkpoint}/measured.safetensors",
    wildcard_constraints:
        model=one_of("models"),
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(3000),
        runtime=config["minutes"]["measure"],
        gpu=gpus("measure"),
    params:
        tokens_per_batch=config["measure"]["tokens_per_batch"],
    script:
        "../scripts/structural/measure_rotary.py"


# Figures, tables and what they are made from: a row each, see rules/made.smk.

OF_PROFILES = "Figures 1, 2: rollout variants (a), (b), (c) beside the measured influence (d)."
AT_STANDARD = rollouts("profiles.parquet", PRIMARY, STANDARD)

if FIG1:
    FIGURES["structural/fig1"] = made.Made(
        OF_PROFILES,
        "structural.figures:fig1",
        {"profiles": across_models(AT_STANDARD, FIG1)},
    )
if FIG2:
    FIGURES["structural/fig2"] = made.Made(
        OF_PROFILES,
        "structural.figures:fig1",
        {"profiles": across_models(AT_STANDARD, FIG2)},
        caption="structural/draw_fig1",
    )
if TRAINED:
    FIGURES["structural/training"] = made.Made(
        "What training does to the profile: measured influence and (b) at every kept step (our addition).",
        "structural.figures:training",
        {"profiles": across_models(AT_STANDARD, TRAINED, STEPS)},
    )
FIGURES |= {
    "structural/fig3": made.Made(
        "Figure 3: measured influence at the long length, every model and data set.",
        "structural.figures:fig3",
        {"profiles": across_datasets(rollouts("profiles.parquet", "{dataset}", LONG))},
    ),
    "structural/fig4": made.Made(
        "Figure 4: residual mixing across layers, one panel a data set.",
        "structural.figures:fig4",
        {"mixing": across_datasets(measured("lambda", [STANDARD]))},
    ),
    "structural/fig5": made.Made(
        "Figure 5: mean content logits of representative layers and heads, one seed a model.",
        "structural.figures_content:fig5",
        {"content": structural_first_seeds(f"n{HEATMAP}/content.safetensors")},
    ),
    "structural/long_training": made.Made(
        "Influence, residual mixing, content and distances at steps of a longer training, from evidence/ (our addition).",
        "structural.figures_long_training:long_training",
        {name: project(f"evidence/structural/language-model/{file}.csv") for name, file in STRUCTURAL_EVIDENCE.items()},
    ),
    "structural/forces": made.Made(
        "Propositions 4.2-4.5: what depth, mixing, positional bias and diagonal content do to early tokens' share.",
        "structural.figures_theory:forces",
        {"table": "results/theory/forces.csv"},
    ),
    "structural/dichotomy": made.Made(
        "Theorem 5.5: what lies beyond the first token against depth, for summable and other schedules of lambda.",
        "structural.figures_theory:dichotomy",
        {"table": "results/theory/dichotomy.csv"},
    ),
}

OF_DISTANCES = (
    "Tables 2, 3, 4: distance of every rollout variant to the measured influence, with null profiles; Spearman's too."
)
STATISTICS = {
    "table2": (
        ["wasserstein"],
        across_models(rollouts("statistics.parquet", PRIMARY, STANDARD)),
    ),
    "table3": (
        ["wasserstein"],
        across_datasets(rollouts("statistics.parquet", "{dataset}", STANDARD)),
    ),
    "table4": (
        ["wasserstein"],
        across_datasets(rollouts("statistics.parquet", "{dataset}", LONG)),
    ),
    "spearman": (
        ["spearman", "total variation"],
        across_datasets([rollouts("statistics.parquet", "{dataset}", n) for n in (STANDARD, *MORE, LONG)]),
    ),
}

if TRAINED:
    TABLES["structural/table1"] = made.Made(
        "Table 1: size of every model, and the loss that it reached.",
        "structural.tables:table1",
        {
            "losses": evidence_models("loss.csv", TRAINED),
            "models": across_models("results/models/{model}/{checkpoint}", TRAINED),
            "published": project("published/structural_models.csv"),
        },
        {"architectures": {model: config["models"][model]["architecture"] for model in TRAINED}},
    )
TABLES |= {
    f"structural/{table}": made.Made(
        OF_DISTANCES,
        "structural.tables:distances",
        {
            "statistics": files,
            "published": project("published/structural_distances.csv"),
        },
        {"names": names, "table": table},
        readable="structural.tables:readable",
        caption="structural/spearman" if table == "spearman" else "structural/table2",
    )
    for table, (names, files) in STATISTICS.items()
}
TABLES |= {
    "structural/table5": made.Made(
        "Table 5: how alike mean content logits are on the diagonal and below it, two ways.",
        "structural.content:table5",
        {"content": across_datasets(measured("content", [STANDARD]))},
        readable="structural.content:readable_similarity",
        needs={"mem_mb": lambda wildcards, input, attempt: table5_memory(input.content) * attempt},
    ),
    "structural/shift": made.Made(
        "Section 6.1: in how many heads content shifts the diagonal the same way.",
        "structural.content:shift",
        {"content": across_datasets(measured("content", [STANDARD]))},
        {
            "replicates": config["rollout"]["bootstrap"],
            "level": config["rollout"]["level"],
            "seed": config["seed"],
        },
    ),
    "structural/monotonicity": made.Made(
        "Assumption 4.1: violations of stochastic monotonicity, by measured attention and the authors' construction.",
        "structural.content:monotonicity_of_layers",
        {
            "attention": across_datasets(measured("attention", [STANDARD])),
            "slopes": across_datasets(measured("slopes", [STANDARD])),
            "mixing": across_datasets(measured("lambda", [STANDARD])),
        },
        readable="structural.content:readable_kernels",
    ),
    "structural/licences": made.Made(
        "Table 6: licences of the models and texts, the paper's and ours.",
        "structural.tables:licences",
        {"published": project("published/structural_licences.csv")},
    ),
    "structural/propositions": made.Made(
        "Verdicts on Propositions 4.2-4.5, Lemma 5.4 and Theorem 5.5, and the curves that their figures draw.",
        "structural.checks_theory:tables",
        values={"scale": config["scale"]},
        outputs={
            "forces": "results/theory/forces.csv",
            "dichotomy": "results/theory/dichotomy.csv",
        },
    ),
}

TABLES["structural/checks"] = made.Made(
    "Verdicts: each claim of the paper against what was measured, with its interval.",
    "structural.verdicts:verdicts",
    {
        "during_training": across_models(rollouts("replicates.parquet", PRIMARY, STANDARD), steps=STEPS[:-1]),
        "at_standard": across_datasets(rollouts("replicates.parquet", "{dataset}", STANDARD)),
        "at_long": across_datasets(rollouts("replicates.parquet", "{dataset}", LONG)),
        "at_more": across_datasets([rollouts("replicates.parquet", "{dataset}", n) for n in MORE]),
        "shift": "results/tables/structural/shift.csv",
        "published": project("published/structural_distances.csv"),
        "curves": project("published/structural_curves.csv"),
        "rotary": evidence_tables("structural/*/rotary.csv"),
        "pretrained": evidence_tables("structural/*/pretrained.csv"),
        "long_training": evidence_tables("structural/*/compared.csv"),
        "similarity": "results/tables/structural/table5.csv",
        "monotonicity": "results/tables/structural/monotonicity.csv",
        "predicted": project("published/predictions.csv"),
    },
    {
        "primary": PRIMARY,
        "scale": config["scale"],
        "level": config["rollout"]["level"],
    },
    readable="verdicts.verdict:readable",
)

ROLLOUT = "{model}/{checkpoint}/{dataset}/n{n}"

FILES |= {
    "rollout": made.Made(
        "Roll attention out under every variant of Section 6.2 and compare with the measured influence.",
        "rollout.comparison:tables",
        {
            name: f"results/measure/{ROLLOUT}/{file}.safetensors"
            for name, file in {
                "mixing": "lambda",
                "content": "content",
                "attention": "attention",
                "influence": "influence",
                "slopes": "slopes",
            }.items()
        },
        {
            "replicates": config["rollout"]["bootstrap"],
            "level": config["rollout"]["level"],
            "seed": config["seed"],
        },
        outputs={
            name: f"results/rollout/{ROLLOUT}/{name}.parquet" for name in ("profiles", "statistics", "replicates")
        },
        log=f"logs/rollout/{ROLLOUT}.log",
        group="rollouts",
        needs={"mem_mb": memory(2000), "runtime": 20},
    ),
    "structural_evidence": made.Made(
        "What is measured and predicted of language models at every kept step of long trainings, and their losses.",
        "structural.evidence:evidence",
        {
            **{
                name: evidence_rungs(rollouts(f"{name}.parquet", PRIMARY, STANDARD))
                for name in ("profiles", "statistics", "replicates")
            },
            "mixing": evidence_rungs(*measured("lambda", [STANDARD])),
            "content": evidence_rungs(*measured("content", [STANDARD])),
            "losses": evidence_models("loss.csv", EVIDENCE["structural"]),
            "runs": evidence_models("run.csv", EVIDENCE["structural"]),
        },
        {"scale": config["scale"], "level": config["rollout"]["level"]},
        outputs={
            name: f"results/evidence/structural/{{group}}/{file}.csv"
            for name, file in {
                **STRUCTURAL_EVIDENCE,
                "compared": "compared",
                "runs": "runs",
            }.items()
        },
        log="logs/evidence/structural/{group}.log",
    ),
    "structural_rotary": made.Made(
        "What kernels of a decoder with rotary positions predict of its attention and its influence (our addition).",
        "structural.rotary:of_checkpoint",
        {"measurement": "results/rotary/{model}/{checkpoint}/measured.safetensors"},
        {
            "model": lambda wildcards: wildcards.model,
            "checkpoint": lambda wildcards: wildcards.checkpoint,
        },
        outputs={"csv": "results/rotary/{model}/{checkpoint}/kernels.csv"},
    ),
    "structural_evidence_rotary": made.Made(
        "What kernels predict of decoders with rotary positions, at every kept step of their trainings.",
        "structural.rotary:evidence",
        {
            "rotary": across_models(
                "results/rotary/{model}/{checkpoint}/kernels.csv",
                EVIDENCE["rotary"],
                STEPS,
            ),
            "losses": evidence_models("loss.csv", EVIDENCE["rotary"]),
            "runs": evidence_models("run.csv", EVIDENCE["rotary"]),
        },
        {"scale": config["scale"]},
        outputs={
            "rotary": "results/evidence/structural/{group}/rotary.csv",
            "losses": "results/evidence/structural/{group}/rotary_losses.csv",
            "runs": "results/evidence/structural/{group}/rotary_runs.csv",
        },
        log="logs/evidence/structural/{group}_rotary.log",
    ),
}


rule structural:
    """Every figure and table of Herasimchyk et al. 2026."""
    input:
        of_wing("structural"),
