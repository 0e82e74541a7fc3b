# Tables and verdicts, each as CSV to compute with and Markdown to read, and the named target of each paper. Values that
# a paper prints come from published/.


rule structural_table1:
    """Table 1: size of every model, and the loss that it reached."""
    input:
        library=library("structural_table1.py"),
        losses=[
            f"results/models/{model}/seed{seed}/loss.csv"
            for model in TRAINED
            for seed in config["models"][model]["seeds"]
        ],
        models=across_models("results/models/{model}/{checkpoint}", TRAINED),
        published=project("published/structural_models.csv"),
    output:
        csv="results/tables/structural/table1.csv",
        md=report(
            "results/tables/structural/table1.md",
            caption="../report/structural_table1.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/table1.log",
    benchmark:
        "results/benchmarks/tables/structural/table1.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        architectures={
            model: config["models"][model]["architecture"] for model in TRAINED
        },
    script:
        "../scripts/structural_table1.py"


rule structural_table2:
    """Tables 2, 3, 4: distance of every rollout variant to the measured influence, with null profiles; Spearman's too."""
    input:
        library=library("structural_table2.py"),
        statistics=across_models(rollouts("statistics.parquet", PRIMARY, STANDARD)),
        published=project("published/structural_distances.csv"),
    output:
        csv="results/tables/structural/table2.csv",
        md=report(
            "results/tables/structural/table2.md",
            caption="../report/structural_table2.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/table2.log",
    benchmark:
        "results/benchmarks/tables/structural/table2.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        statistics=["wasserstein"],
        published="table2",
    script:
        "../scripts/structural_table2.py"


use rule structural_table2 as structural_table3 with:
    input:
        library=library("structural_table2.py"),
        statistics=across_datasets(
            rollouts("statistics.parquet", "{dataset}", STANDARD)
        ),
        published=project("published/structural_distances.csv"),
    output:
        csv="results/tables/structural/table3.csv",
        md=report(
            "results/tables/structural/table3.md",
            caption="../report/structural_table2.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/table3.log",
    benchmark:
        "results/benchmarks/tables/structural/table3.tsv"
    params:
        statistics=["wasserstein"],
        published="table3",


use rule structural_table2 as structural_table4 with:
    input:
        library=library("structural_table2.py"),
        statistics=across_datasets(rollouts("statistics.parquet", "{dataset}", LONG)),
        published=project("published/structural_distances.csv"),
    output:
        csv="results/tables/structural/table4.csv",
        md=report(
            "results/tables/structural/table4.md",
            caption="../report/structural_table2.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/table4.log",
    benchmark:
        "results/benchmarks/tables/structural/table4.tsv"
    params:
        statistics=["wasserstein"],
        published="table4",


rule structural_table5:
    """Table 5: how alike mean content logits are on the diagonal and below it, two ways."""
    input:
        library=library("structural_table5.py"),
        content=across_datasets(measured("content", [STANDARD])),
    output:
        csv="results/tables/structural/table5.csv",
        md=report(
            "results/tables/structural/table5.md",
            caption="../report/structural_table5.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/table5.log",
    benchmark:
        "results/benchmarks/tables/structural/table5.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_table5.py"


rule structural_monotonicity:
    """Assumption 4.1: violations of stochastic monotonicity, by measured attention and the authors' construction."""
    input:
        library=library("structural_monotonicity.py"),
        attention=across_datasets(measured("attention", [STANDARD])),
        slopes=across_datasets(measured("slopes", [STANDARD])),
        mixing=across_datasets(measured("lambda", [STANDARD])),
    output:
        csv="results/tables/structural/monotonicity.csv",
        md=report(
            "results/tables/structural/monotonicity.md",
            caption="../report/structural_monotonicity.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/monotonicity.log",
    benchmark:
        "results/benchmarks/tables/structural/monotonicity.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_monotonicity.py"


use rule structural_table2 as structural_spearman with:
    input:
        library=library("structural_table2.py"),
        statistics=across_datasets(
            [
                rollouts("statistics.parquet", "{dataset}", n)
                for n in (STANDARD, *MORE, LONG)
            ]
        ),
    output:
        csv="results/tables/structural/spearman.csv",
        md=report(
            "results/tables/structural/spearman.md",
            caption="../report/structural_spearman.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/spearman.log",
    benchmark:
        "results/benchmarks/tables/structural/spearman.tsv"
    params:
        statistics=["spearman", "total variation"],
        published="",


rule structural_licences:
    """Table 6: licences of the models and texts, the paper's and ours."""
    input:
        library=library("structural_licences.py"),
        published=project("published/structural_licences.csv"),
    output:
        csv="results/tables/structural/licences.csv",
        md="results/tables/structural/licences.md",
    log:
        "logs/tables/structural/licences.log",
    benchmark:
        "results/benchmarks/tables/structural/licences.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_licences.py"


rule structural_checks:
    """Verdicts: each claim of the paper against what was measured, with its interval."""
    input:
        library=library("structural_checks.py"),
        replicates=across_models(rollouts("replicates.parquet", PRIMARY, STANDARD)),
        during_training=across_models(
            rollouts("replicates.parquet", PRIMARY, STANDARD), steps=STEPS[:-1]
        ),
        similarity="results/tables/structural/table5.csv",
        monotonicity="results/tables/structural/monotonicity.csv",
    output:
        csv="results/tables/structural/checks.csv",
        md=report(
            "results/tables/structural/checks.md",
            caption="../report/structural_checks.rst",
            category="structural",
        ),
    log:
        "logs/tables/structural/checks.log",
    benchmark:
        "results/benchmarks/tables/structural/checks.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        scale=lookup(dpath="scale", within=config),
        level=lookup(dpath="rollout/level", within=config),
    script:
        "../scripts/structural_checks.py"


rule structural_propositions:
    """Verdicts on Propositions 4.2-4.5, Lemma 5.4 and Theorem 5.5, and the curves that their figures draw."""
    input:
        library=library("structural_propositions.py"),
    output:
        csv="results/tables/structural/propositions.csv",
        md=report(
            "results/tables/structural/propositions.md",
            caption="../report/structural_propositions.rst",
            category="structural",
        ),
        forces="results/theory/forces.csv",
        dichotomy="results/theory/dichotomy.csv",
    log:
        "logs/tables/structural/propositions.log",
    benchmark:
        "results/benchmarks/tables/structural/propositions.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/structural_propositions.py"


rule structural:
    """Every figure and table of Herasimchyk et al. 2026."""
    input:
        rules.structural_fig1.output,
        rules.structural_fig2.output if FIG2 else [],
        rules.structural_fig3.output,
        rules.structural_fig4.output,
        rules.structural_fig5.output,
        rules.structural_forces.output,
        rules.structural_dichotomy.output,
        rules.structural_training.output if TRAINED else [],
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


rule emergence_gaps:
    """Every accuracy gap with its interval over seeds, its prediction and its verdict."""
    input:
        library=library("emergence_gaps.py"),
        curves=emergence_curves(*EMERGENCE_STUDIES),
    output:
        csv="results/tables/emergence/gaps.csv",
        md=report(
            "results/tables/emergence/gaps.md",
            caption="../report/emergence_gaps.rst",
            category="emergence",
        ),
    log:
        "logs/tables/emergence/gaps.log",
    benchmark:
        "results/benchmarks/tables/emergence/gaps.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="emergence/level", within=config),
        settled=lookup(dpath="emergence/testing/settled", within=config),
    script:
        "../scripts/emergence_gaps.py"


rule emergence_checks:
    """Verdicts on what Wu et al. claim of several networks together, and of attention sinks."""
    input:
        library=library("emergence_checks.py"),
        curves=emergence_curves(*EMERGENCE_STUDIES),
        sinks=emergence_shallow("sinks.parquet", *OF_SINKS.values()),
    output:
        csv="results/tables/emergence/checks.csv",
        md=report(
            "results/tables/emergence/checks.md",
            caption="../report/emergence_checks.rst",
            category="emergence",
        ),
    log:
        "logs/tables/emergence/checks.log",
    benchmark:
        "results/benchmarks/tables/emergence/checks.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="emergence/level", within=config),
        scale=lookup(dpath="scale", within=config),
        threshold=lookup(dpath="emergence/sinks/threshold", within=config),
    script:
        "../scripts/emergence_checks.py"


rule emergence_theorems:
    """Verdicts on the theorems, as printed and with corrected constants, and the curves of their figure."""
    input:
        library=library("emergence_theorems.py"),
    output:
        csv="results/tables/emergence/theorems.csv",
        md=report(
            "results/tables/emergence/theorems.md",
            caption="../report/emergence_theorems.rst",
            category="emergence",
        ),
        convergence="results/theory/emergence/convergence.csv",
        decay="results/theory/emergence/decay.csv",
        rope="results/theory/emergence/rope.csv",
        peaks="results/theory/emergence/peaks.csv",
    log:
        "logs/tables/emergence/theorems.log",
    benchmark:
        "results/benchmarks/tables/emergence/theorems.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        numbers=lookup(dpath="emergence/theory", within=config),
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/emergence_theorems.py"


rule emergence:
    """Every figure and table of Wu et al. 2025."""
    input:
        rules.emergence_fig1.output,
        rules.emergence_fig2.output,
        rules.emergence_learning_curves.output,
        rules.emergence_long_training.output,
        rules.emergence_theory.output,
        rules.emergence_gaps.output,
        rules.emergence_checks.output,
        rules.emergence_theorems.output,
        expand(
            "figures/emergence/{figure}.{suffix}",
            figure=[
                *emergence_figures(BY_DEPTH | BY_BIAS),
                *emergence_without_encoding(OF_MAPS | OF_SINKS),
            ],
            suffix=["pdf", "svg", "png"],
        ),


rule layernorm_checks:
    """Verdicts on what norms do to scores: theory, random weights, trained networks, language models."""
    input:
        library=library("layernorm_checks.py"),
        theory="results/theory/layernorm/verdicts.csv",
        random="results/layernorm/random_weights.parquet",
        trained=expand(
            "results/layernorm/trained/{norm}.parquet", norm=LAYERNORM_NETWORKS
        ),
        grams=GRAMS,
        curves=emergence_shallow("curves.parquet", *NORMALISED.values()),
    output:
        csv="results/tables/layernorm/checks.csv",
        md=report(
            "results/tables/layernorm/checks.md",
            caption="../report/layernorm_checks.rst",
            category="layernorm",
        ),
    log:
        "logs/tables/layernorm/checks.log",
    benchmark:
        "results/benchmarks/tables/layernorm/checks.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="layernorm/level", within=config),
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/layernorm_checks.py"


rule layernorm:
    """Every figure and table of Kim et al. 2026."""
    input:
        rules.layernorm_checks.output,
        rules.layernorm_scores.output,
        rules.layernorm_closed_form.output,
        rules.layernorm_anisotropy.output,
        rules.layernorm_depth.output,
        rules.layernorm_random_weights.output,
        rules.layernorm_trained.output,
        rules.layernorm_pretrained.output,
        rules.layernorm_emergence.output,


rule postnorm_checks:
    """Verdicts on norms after attention: lengths, laws, widths, averages, languages, stability."""
    input:
        library=library("postnorm_checks.py"),
        tests=[
            *postnorm_tests("tests.parquet", "set_complement"),
            *postnorm_tests("tests.parquet", "languages"),
        ],
        construction="results/postnorm/construction.csv",
        dimension="results/postnorm/dimension.parquet",
        averaging="results/postnorm/averaging/tests.parquet",
        stability="results/postnorm/stability.parquet",
    output:
        csv="results/tables/postnorm/checks.csv",
        md=report(
            "results/tables/postnorm/checks.md",
            caption="../report/postnorm_checks.rst",
            category="postnorm",
        ),
    log:
        "logs/tables/postnorm/checks.log",
    benchmark:
        "results/benchmarks/tables/postnorm/checks.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="postnorm/level", within=config),
        scale=lookup(dpath="scale", within=config),
    script:
        "../scripts/postnorm_checks.py"


rule postnorm:
    """Every figure and table of Zsamboki et al. 2025."""
    input:
        rules.postnorm_checks.output,
        rules.postnorm_set_complement.output,
        rules.postnorm_resharpening.output,
        rules.postnorm_dimension.output,
        rules.postnorm_bema.output,
        rules.postnorm_formal_languages.output,
        rules.postnorm_stability.output,


rule sweeps:
    """Tables of the learning rates that were tried, to be kept in evidence/."""
    input:
        rules.layernorm_sweep.output,
        rules.postnorm_sweep.output,


rule scorecard:
    """One verdict for each claim of the papers, from the tables of checks; the text is what `make all` prints."""
    input:
        library=library("scorecard.py"),
        checks=expand("results/tables/{table}.csv", table=of_claims.tables(CLAIMS)),
        claims=project("published/claims.csv"),
        published=project("published/values.csv"),
    output:
        csv="results/tables/scorecard.csv",
        md=report(
            "results/tables/scorecard.md",
            caption="../report/scorecard.rst",
            category="scorecard",
        ),
        txt="results/tables/scorecard.txt",
    log:
        "logs/tables/scorecard.log",
    benchmark:
        "results/benchmarks/tables/scorecard.tsv"
    conda:
        "../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="rollout/level", within=config),
    script:
        "../scripts/scorecard.py"
