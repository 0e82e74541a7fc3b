# Herasimchyk et al. 2026. Predictions and their distance to the measurement. In: results/measure/.../. Out, under the same path below
# results/rollout/: profiles.parquet (every variant with its interval), statistics.parquet, and the bootstrap replicates of
# the statistics, from which verdicts on differences are drawn.


include: "files/structural.smk"


rule rollout:
    """Roll attention out under every variant of Section 6.2 and compare with the measured influence."""
    input:
        mixing="results/measure/{model}/{checkpoint}/{dataset}/n{n}/lambda.safetensors",
        content="results/measure/{model}/{checkpoint}/{dataset}/n{n}/content.safetensors",
        attention="results/measure/{model}/{checkpoint}/{dataset}/n{n}/attention.safetensors",
        influence="results/measure/{model}/{checkpoint}/{dataset}/n{n}/influence.safetensors",
        slopes="results/measure/{model}/{checkpoint}/{dataset}/n{n}/slopes.safetensors",
    output:
        profiles="results/rollout/{model}/{checkpoint}/{dataset}/n{n}/profiles.parquet",
        statistics="results/rollout/{model}/{checkpoint}/{dataset}/n{n}/statistics.parquet",
        replicates="results/rollout/{model}/{checkpoint}/{dataset}/n{n}/replicates.parquet",
    log:
        "logs/rollout/{model}/{checkpoint}/{dataset}/n{n}.log",
    group:
        "rollouts"
    resources:
        mem_mb=memory(2000),
        runtime=20,
    params:
        bootstrap=config["rollout"]["bootstrap"],
        level=config["rollout"]["level"],
        seed=config["seed"],
    script:
        "../scripts/structural/rollout.py"


rule structural_propositions:
    """Verdicts on Propositions 4.2-4.5, Lemma 5.4 and Theorem 5.5, and the curves that their figures draw."""
    output:
        **tabled("structural/propositions"),
        forces="results/theory/forces.csv",
        dichotomy="results/theory/dichotomy.csv",
    params:
        scale=config["scale"],
    script:
        "../scripts/structural/propositions.py"


rule structural_draw_fig1:
    """Figures 1, 2: rollout variants (a), (b), (c) beside the measured influence (d)."""
    input:
        profiles=structural_profiles(FIG1, "one"),
    output:
        **drawn("structural/fig1"),
    script:
        "../scripts/structural/draw_fig1.py"


use rule structural_draw_fig1 as structural_draw_fig2 with:
    input:
        profiles=structural_profiles(FIG2, "not all"),
    output:
        **drawn("structural/fig2", "structural/draw_fig1"),


rule structural_draw_fig3:
    """Figure 3: measured influence at the long length, every model and data set."""
    input:
        profiles=across_datasets(rollouts("profiles.parquet", "{dataset}", LONG)),
    output:
        **drawn("structural/fig3"),
    script:
        "../scripts/structural/draw_fig3.py"


rule structural_draw_fig4:
    """Figure 4: residual mixing across layers, one panel a data set."""
    input:
        mixing=across_datasets(
            f"results/measure/{{model}}/{{checkpoint}}/{{dataset}}/n{STANDARD}/lambda.safetensors"
        ),
    output:
        **drawn("structural/fig4"),
    script:
        "../scripts/structural/draw_fig4.py"


rule structural_draw_fig5:
    """Figure 5: mean content logits of representative layers and heads, one seed a model."""
    input:
        content=[
            f"results/measure/{model}/{checkpoints(model, [LAST])[0]}/{PRIMARY}/n{HEATMAP}/content.safetensors"
            for model in MODELS
        ],
    output:
        **drawn("structural/fig5"),
    script:
        "../scripts/structural/draw_fig5.py"


rule structural_draw_training:
    """What training does to the profile: measured influence and (b) at every kept step (our addition)."""
    input:
        profiles=across_models(
            rollouts("profiles.parquet", PRIMARY, STANDARD), TRAINED, STEPS
        ),
    output:
        **drawn("structural/training"),
    script:
        "../scripts/structural/draw_training.py"


rule structural_draw_long_training:
    """Influence, residual mixing, content and distances at steps of a longer training, from evidence/ (our addition)."""
    input:
        profiles=project("evidence/structural/language-model/profiles.csv"),
        statistics=project("evidence/structural/language-model/statistics.csv"),
        mixing=project("evidence/structural/language-model/lambda.csv"),
        content=project("evidence/structural/language-model/content.csv"),
        losses=project("evidence/structural/language-model/losses.csv"),
    output:
        **drawn("structural/long_training"),
    script:
        "../scripts/structural/draw_long_training.py"


rule structural_draw_forces:
    """Propositions 4.2-4.5: what depth, mixing, positional bias and diagonal content do to early tokens' share."""
    input:
        forces="results/theory/forces.csv",
    output:
        **drawn("structural/forces"),
    script:
        "../scripts/structural/draw_forces.py"


rule structural_draw_dichotomy:
    """Theorem 5.5: what lies beyond the first token against depth, for summable and other schedules of lambda."""
    input:
        dichotomy="results/theory/dichotomy.csv",
    output:
        **drawn("structural/dichotomy"),
    script:
        "../scripts/structural/draw_dichotomy.py"


rule structural_table1:
    """Table 1: size of every model, and the loss that it reached."""
    input:
        losses=[
            f"results/models/{model}/seed{seed}/loss.csv"
            for model in TRAINED
            for seed in config["models"][model]["seeds"]
        ],
        models=across_models("results/models/{model}/{checkpoint}", TRAINED),
        published=project("published/structural_models.csv"),
    output:
        **tabled("structural/table1"),
    params:
        architectures={
            model: config["models"][model]["architecture"] for model in TRAINED
        },
    script:
        "../scripts/structural/table1.py"


rule structural_table2:
    """Tables 2, 3, 4: distance of every rollout variant to the measured influence, with null profiles; Spearman's too."""
    input:
        statistics=across_models(rollouts("statistics.parquet", PRIMARY, STANDARD)),
        published=project("published/structural_distances.csv"),
    output:
        **tabled("structural/table2"),
    params:
        statistics=["wasserstein"],
        published="table2",
    script:
        "../scripts/structural/table2.py"


use rule structural_table2 as structural_table3 with:
    input:
        statistics=across_datasets(
            rollouts("statistics.parquet", "{dataset}", STANDARD)
        ),
        published=project("published/structural_distances.csv"),
    output:
        **tabled("structural/table3", "structural/table2"),
    params:
        statistics=["wasserstein"],
        published="table3",


use rule structural_table2 as structural_table4 with:
    input:
        statistics=across_datasets(rollouts("statistics.parquet", "{dataset}", LONG)),
        published=project("published/structural_distances.csv"),
    output:
        **tabled("structural/table4", "structural/table2"),
    params:
        statistics=["wasserstein"],
        published="table4",


rule structural_table5:
    """Table 5: how alike mean content logits are on the diagonal and below it, two ways."""
    input:
        content=across_datasets(measured("content", [STANDARD])),
    output:
        **tabled("structural/table5"),
    resources:
        mem_mb=lambda wildcards, input, attempt: table5_memory(input.content) * attempt,
    script:
        "../scripts/structural/table5.py"


rule structural_shift:
    """Section 6.1: in how many heads content shifts the diagonal the same way."""
    input:
        content=across_datasets(measured("content", [STANDARD])),
    output:
        **tabled("structural/shift"),
    conda:
        "../envs/analysis.yaml"
    params:
        seed=config["seed"],
        replicates=config["rollout"]["bootstrap"],
        level=config["rollout"]["level"],
    script:
        "../scripts/structural/shift.py"


use rule structural_table2 as structural_spearman with:
    input:
        statistics=across_datasets(
            [
                rollouts("statistics.parquet", "{dataset}", n)
                for n in (STANDARD, *MORE, LONG)
            ]
        ),
    output:
        **tabled("structural/spearman"),
    params:
        statistics=["spearman", "total variation"],
        published="",


rule structural_monotonicity:
    """Assumption 4.1: violations of stochastic monotonicity, by measured attention and the authors' construction."""
    input:
        attention=across_datasets(measured("attention", [STANDARD])),
        slopes=across_datasets(measured("slopes", [STANDARD])),
        mixing=across_datasets(measured("lambda", [STANDARD])),
    output:
        **tabled("structural/monotonicity"),
    script:
        "../scripts/structural/monotonicity.py"


rule structural_licences:
    """Table 6: licences of the models and texts, the paper's and ours."""
    input:
        published=project("published/structural_licences.csv"),
    output:
        csv="results/tables/structural/licences.csv",
        md="results/tables/structural/licences.md",
    script:
        "../scripts/structural/licences.py"


rule structural_checks:
    """Verdicts: each claim of the paper against what was measured, with its interval."""
    input:
        during_training=across_models(
            rollouts("replicates.parquet", PRIMARY, STANDARD), steps=STEPS[:-1]
        ),
        at_standard=across_datasets(
            rollouts("replicates.parquet", "{dataset}", STANDARD)
        ),
        at_long=across_datasets(rollouts("replicates.parquet", "{dataset}", LONG)),
        at_more=across_datasets(
            [rollouts("replicates.parquet", "{dataset}", n) for n in MORE]
        ),
        shift="results/tables/structural/shift.csv",
        published=project("published/structural_distances.csv"),
        rotary=kept("structural/*/rotary.csv"),
        long_training=kept("structural/*/compared.csv"),
        similarity="results/tables/structural/table5.csv",
        monotonicity="results/tables/structural/monotonicity.csv",
        predictions=project("published/predictions.csv"),
    output:
        **tabled("structural/checks"),
    params:
        primary=PRIMARY,
        scale=config["scale"],
        level=config["rollout"]["level"],
    script:
        "../scripts/structural/checks.py"


rule structural_evidence:
    """What is measured and predicted of language models at every kept step of long trainings, and their losses."""
    input:
        profiles=evidence_rungs(rollouts("profiles.parquet", PRIMARY, STANDARD)),
        statistics=evidence_rungs(rollouts("statistics.parquet", PRIMARY, STANDARD)),
        replicates=evidence_rungs(rollouts("replicates.parquet", PRIMARY, STANDARD)),
        mixing=evidence_rungs(*measured("lambda", [STANDARD])),
        content=evidence_rungs(*measured("content", [STANDARD])),
        losses=evidence_models("loss.csv", EVIDENCE["structural"]),
        runs=evidence_models("run.csv", EVIDENCE["structural"]),
    output:
        profiles="results/evidence/structural/{group}/profiles.csv",
        statistics="results/evidence/structural/{group}/statistics.csv",
        compared="results/evidence/structural/{group}/compared.csv",
        mixing="results/evidence/structural/{group}/lambda.csv",
        content="results/evidence/structural/{group}/content.csv",
        losses="results/evidence/structural/{group}/losses.csv",
        runs="results/evidence/structural/{group}/runs.csv",
    log:
        "logs/evidence/structural/{group}.log",
    params:
        scale=config["scale"],
        level=config["rollout"]["level"],
    script:
        "../scripts/structural/evidence.py"


rule structural_measure_rotary:
    """Measure mixing, influence, attention and kernels of a decoder with rotary positions that was trained here."""
    input:
        model="results/models/{model}/{checkpoint}",
        prompts=f"results/prompts/offline/{PRIMARY}/n{STANDARD}.safetensors",
    output:
        "results/rotary/{model}/{checkpoint}/measured.safetensors",
    wildcard_constraints:
        model=named("models"),
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


rule structural_rotary:
    """What kernels of a decoder with rotary positions predict of its attention and its influence (our addition)."""
    input:
        "results/rotary/{model}/{checkpoint}/measured.safetensors",
    output:
        "results/rotary/{model}/{checkpoint}/kernels.csv",
    script:
        "../scripts/structural/rotary.py"


rule structural_evidence_rotary:
    """What kernels predict of decoders with rotary positions, at every kept step of their trainings."""
    input:
        rotary=across_models(
            "results/rotary/{model}/{checkpoint}/kernels.csv",
            EVIDENCE["rotary"],
            STEPS,
        ),
        losses=evidence_models("loss.csv", EVIDENCE["rotary"]),
        runs=evidence_models("run.csv", EVIDENCE["rotary"]),
    output:
        rotary="results/evidence/structural/{group}/rotary.csv",
        losses="results/evidence/structural/{group}/rotary_losses.csv",
        runs="results/evidence/structural/{group}/rotary_runs.csv",
    log:
        "logs/evidence/structural/{group}_rotary.log",
    params:
        scale=config["scale"],
    script:
        "../scripts/structural/evidence_rotary.py"


rule structural:
    """Every figure and table of Herasimchyk et al. 2026."""
    input:
        rules.structural_draw_fig1.output if FIG1 else [],
        rules.structural_draw_fig2.output if FIG2 else [],
        rules.structural_draw_fig3.output,
        rules.structural_draw_fig4.output,
        rules.structural_draw_fig5.output,
        rules.structural_draw_forces.output,
        rules.structural_draw_dichotomy.output,
        rules.structural_draw_training.output if TRAINED else [],
        rules.structural_draw_long_training.output,
        rules.structural_table1.output if TRAINED else [],
        rules.structural_table2.output,
        rules.structural_table3.output,
        rules.structural_table4.output,
        rules.structural_table5.output,
        rules.structural_spearman.output,
        rules.structural_monotonicity.output,
        rules.structural_licences.output,
        rules.structural_propositions.output,
        rules.structural_checks.output,
