# Figures, each as PDF to print, SVG for the report and PNG to look at: figures/{paper}/{figure}.{pdf,svg,png}.


rule structural_fig1:
    """Figures 1, 2: rollout variants (a), (b), (c) beside the measured influence (d)."""
    input:
        library=library("structural_fig1.py"),
        profiles=across_models(rollouts("profiles.parquet", PRIMARY, STANDARD), FIG1),
    output:
        pdf="figures/structural/fig1.pdf",
        svg=report(
            "figures/structural/fig1.svg",
            caption="../report/structural_fig1.rst",
            category="structural",
        ),
        png="figures/structural/fig1.png",
    log:
        "logs/figures/structural/fig1.log",
    benchmark:
        "results/benchmarks/figures/structural/fig1.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_fig1.py"


use rule structural_fig1 as structural_fig2 with:
    input:
        library=library("structural_fig1.py"),
        profiles=across_models(rollouts("profiles.parquet", PRIMARY, STANDARD), FIG2),
    output:
        pdf="figures/structural/fig2.pdf",
        svg=report(
            "figures/structural/fig2.svg",
            caption="../report/structural_fig1.rst",
            category="structural",
        ),
        png="figures/structural/fig2.png",
    log:
        "logs/figures/structural/fig2.log",
    benchmark:
        "results/benchmarks/figures/structural/fig2.tsv"


rule structural_fig3:
    """Figure 3: measured influence at the long length, every model and data set."""
    input:
        library=library("structural_fig3.py"),
        profiles=across_datasets(rollouts("profiles.parquet", "{dataset}", LONG)),
    output:
        pdf="figures/structural/fig3.pdf",
        svg=report(
            "figures/structural/fig3.svg",
            caption="../report/structural_fig3.rst",
            category="structural",
        ),
        png="figures/structural/fig3.png",
    log:
        "logs/figures/structural/fig3.log",
    benchmark:
        "results/benchmarks/figures/structural/fig3.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_fig3.py"


rule structural_fig4:
    """Figure 4: residual mixing across layers, one panel a data set."""
    input:
        library=library("structural_fig4.py"),
        mixing=across_datasets(
            f"results/measure/{{model}}/{{checkpoint}}/{{dataset}}/n{STANDARD}/lambda.safetensors"
        ),
    output:
        pdf="figures/structural/fig4.pdf",
        svg=report(
            "figures/structural/fig4.svg",
            caption="../report/structural_fig4.rst",
            category="structural",
        ),
        png="figures/structural/fig4.png",
    log:
        "logs/figures/structural/fig4.log",
    benchmark:
        "results/benchmarks/figures/structural/fig4.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_fig4.py"


rule structural_fig5:
    """Figure 5: mean content logits of representative layers and heads, one seed a model."""
    input:
        library=library("structural_fig5.py"),
        content=[
            f"results/measure/{model}/{checkpoints(model, [LAST])[0]}/{PRIMARY}/n{HEATMAP}/content.safetensors"
            for model in MODELS
        ],
    output:
        pdf="figures/structural/fig5.pdf",
        svg=report(
            "figures/structural/fig5.svg",
            caption="../report/structural_fig5.rst",
            category="structural",
        ),
        png="figures/structural/fig5.png",
    log:
        "logs/figures/structural/fig5.log",
    benchmark:
        "results/benchmarks/figures/structural/fig5.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_fig5.py"


rule structural_training:
    """What training does to the profile: measured influence and (b) at every kept step (ours)."""
    input:
        library=library("structural_training.py"),
        profiles=across_models(
            rollouts("profiles.parquet", PRIMARY, STANDARD), TRAINED, STEPS
        ),
    output:
        pdf="figures/structural/training.pdf",
        svg=report(
            "figures/structural/training.svg",
            caption="../report/structural_training.rst",
            category="structural",
        ),
        png="figures/structural/training.png",
    log:
        "logs/figures/structural/training.log",
    benchmark:
        "results/benchmarks/figures/structural/training.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_training.py"


rule structural_forces:
    """Propositions 4.2-4.5: what depth, mixing, positional bias and diagonal content do to early tokens' share."""
    input:
        library=library("structural_forces.py"),
        forces="results/theory/forces.csv",
    output:
        pdf="figures/structural/forces.pdf",
        svg=report(
            "figures/structural/forces.svg",
            caption="../report/structural_forces.rst",
            category="structural",
        ),
        png="figures/structural/forces.png",
    log:
        "logs/figures/structural/forces.log",
    benchmark:
        "results/benchmarks/figures/structural/forces.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_forces.py"


rule structural_dichotomy:
    """Theorem 5.5: what lies beyond the first token against depth, for summable and other schedules of lambda."""
    input:
        library=library("structural_dichotomy.py"),
        dichotomy="results/theory/dichotomy.csv",
    output:
        pdf="figures/structural/dichotomy.pdf",
        svg=report(
            "figures/structural/dichotomy.svg",
            caption="../report/structural_dichotomy.rst",
            category="structural",
        ),
        png="figures/structural/dichotomy.png",
    log:
        "logs/figures/structural/dichotomy.log",
    benchmark:
        "results/benchmarks/figures/structural/dichotomy.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/structural_dichotomy.py"


rule emergence_fig1:
    """Figure 1: masks as matrices and as graphs, with their centre nodes."""
    input:
        library=library("emergence_fig1.py"),
    output:
        pdf="figures/emergence/fig1.pdf",
        svg=report(
            "figures/emergence/fig1.svg",
            caption="../report/emergence_fig1.rst",
            category="emergence",
        ),
        png="figures/emergence/fig1.png",
    log:
        "logs/figures/emergence/fig1.log",
    benchmark:
        "results/benchmarks/figures/emergence/fig1.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/emergence_fig1.py"


rule emergence_fig2:
    """Figure 2: gaps without bias in the training data, by encoding and depth."""
    input:
        library=library("emergence_fig2.py"),
        curves=emergence_curves(("gaussian", "plain"), ("gaussian", "residual")),
    output:
        pdf="figures/emergence/fig2.pdf",
        svg=report(
            "figures/emergence/fig2.svg",
            caption="../report/emergence_fig2.rst",
            category="emergence",
        ),
        png="figures/emergence/fig2.png",
    log:
        "logs/figures/emergence/fig2.log",
    benchmark:
        "results/benchmarks/figures/emergence/fig2.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="emergence/level", within=config),
    script:
        "../scripts/emergence_fig2.py"


rule emergence_depth:
    """Figures 4, 5, 9, 10: what depth does without bias in the training data."""
    input:
        library=library("emergence_depth.py"),
        curves=emergence_shown(BY_DEPTH, emergence_curves),
    output:
        pdf="figures/emergence/{figure}.pdf",
        svg=report(
            "figures/emergence/{figure}.svg",
            caption="../report/emergence_depth.rst",
            category="emergence",
        ),
        png="figures/emergence/{figure}.png",
    log:
        "logs/figures/emergence/{figure}.log",
    benchmark:
        "results/benchmarks/figures/emergence/{figure}.tsv"
    wildcard_constraints:
        figure="|".join(BY_DEPTH),
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="emergence/level", within=config),
        task=lookup(dpath="emergence/task", within=config),
    script:
        "../scripts/emergence_depth.py"


rule emergence_biased:
    """Figures 3, 6, 11: gaps after training on answers at certain positions."""
    input:
        library=library("emergence_biased.py"),
        curves=emergence_shown(BY_BIAS, emergence_curves),
    output:
        pdf="figures/emergence/{figure}.pdf",
        svg=report(
            "figures/emergence/{figure}.svg",
            caption="../report/emergence_biased.rst",
            category="emergence",
        ),
        png="figures/emergence/{figure}.png",
    log:
        "logs/figures/emergence/{figure}.log",
    benchmark:
        "results/benchmarks/figures/emergence/{figure}.tsv"
    wildcard_constraints:
        figure="|".join(BY_BIAS),
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="emergence/level", within=config),
    script:
        "../scripts/emergence_biased.py"


rule emergence_maps:
    """Figures 7, 12: attention of a network under the causal mask alone."""
    input:
        library=library("emergence_maps.py"),
        maps=emergence_shown(
            OF_MAPS,
            partial(emergence_shallow, "attention.safetensors"),
            emergence_without_encoding,
        ),
    output:
        pdf="figures/emergence/{figure}.pdf",
        svg=report(
            "figures/emergence/{figure}.svg",
            caption="../report/emergence_maps.rst",
            category="emergence",
        ),
        png="figures/emergence/{figure}.png",
    log:
        "logs/figures/emergence/{figure}.log",
    benchmark:
        "results/benchmarks/figures/emergence/{figure}.tsv"
    wildcard_constraints:
        figure="|".join(OF_MAPS),
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/emergence_maps.py"


rule emergence_sinks:
    """Figures 8, 13: attention sinks, beside untrained networks and uniform attention."""
    input:
        library=library("emergence_sinks.py"),
        sinks=emergence_shown(
            OF_SINKS,
            partial(emergence_shallow, "sinks.parquet"),
            emergence_without_encoding,
        ),
    output:
        pdf="figures/emergence/{figure}.pdf",
        svg=report(
            "figures/emergence/{figure}.svg",
            caption="../report/emergence_sinks.rst",
            category="emergence",
        ),
        png="figures/emergence/{figure}.png",
    log:
        "logs/figures/emergence/{figure}.log",
    benchmark:
        "results/benchmarks/figures/emergence/{figure}.tsv"
    wildcard_constraints:
        figure="|".join(OF_SINKS),
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="emergence/level", within=config),
        threshold=lookup(dpath="emergence/sinks/threshold", within=config),
    script:
        "../scripts/emergence_sinks.py"


rule emergence_learning_curves:
    """Loss, accuracy and gaps while networks without residual connections learn (ours)."""
    input:
        library=library("emergence_learning_curves.py"),
        curves=emergence_curves(("gaussian", "plain")),
    output:
        pdf="figures/emergence/learning_curves.pdf",
        svg=report(
            "figures/emergence/learning_curves.svg",
            caption="../report/emergence_learning_curves.rst",
            category="emergence",
        ),
        png="figures/emergence/learning_curves.png",
    log:
        "logs/figures/emergence/learning_curves.log",
    benchmark:
        "results/benchmarks/figures/emergence/learning_curves.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="emergence/level", within=config),
        task=lookup(dpath="emergence/task", within=config),
    script:
        "../scripts/emergence_learning_curves.py"


rule emergence_long_training:
    """Gaps over the whole length of the paper's training (ours), from evidence/."""
    input:
        library=library("emergence_long_training.py"),
        evidence=project("evidence/emergence/depth.csv"),
        curves=emergence_curves(("gaussian", "plain")),
    output:
        pdf="figures/emergence/long_training.pdf",
        svg=report(
            "figures/emergence/long_training.svg",
            caption="../report/emergence_long_training.rst",
            category="emergence",
        ),
        png="figures/emergence/long_training.png",
    log:
        "logs/figures/emergence/long_training.log",
    benchmark:
        "results/benchmarks/figures/emergence/long_training.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="emergence/level", within=config),
        last=8,  # tests, the last fifth
    script:
        "../scripts/emergence_long_training.py"


rule emergence_theory:
    """Theorems 4.1-4.3, 4.5 and 4.7: where multi-layer attention goes without learning."""
    input:
        library=library("emergence_theory.py"),
        convergence="results/theory/emergence/convergence.csv",
        decay="results/theory/emergence/decay.csv",
        rope="results/theory/emergence/rope.csv",
        peaks="results/theory/emergence/peaks.csv",
    output:
        pdf="figures/emergence/theorems.pdf",
        svg=report(
            "figures/emergence/theorems.svg",
            caption="../report/emergence_theory.rst",
            category="emergence",
        ),
        png="figures/emergence/theorems.png",
    log:
        "logs/figures/emergence/theorems.log",
    benchmark:
        "results/benchmarks/figures/emergence/theorems.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/emergence_theory.py"


rule layernorm_scores:
    """Theory: mean scores of the decoder without parameters, layer by layer, by norm and anisotropy."""
    input:
        library=library("layernorm_scores.py"),
        scores="results/layernorm/simulation/scores.safetensors",
    output:
        pdf="figures/layernorm/scores.pdf",
        svg=report(
            "figures/layernorm/scores.svg",
            caption="../report/layernorm_scores.rst",
            category="layernorm",
        ),
        png="figures/layernorm/scores.png",
    log:
        "logs/figures/layernorm/scores.log",
    benchmark:
        "results/benchmarks/figures/layernorm/scores.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        alphas=lookup(dpath="layernorm/simulation/anisotropy", within=config),
    script:
        "../scripts/layernorm_scores.py"


rule layernorm_closed_form:
    """Theory: scores of layer 2, the closed form over Monte Carlo."""
    input:
        library=library("layernorm_closed_form.py"),
        table="results/layernorm/simulation/closed_form.csv",
    output:
        pdf="figures/layernorm/closed_form.pdf",
        svg=report(
            "figures/layernorm/closed_form.svg",
            caption="../report/layernorm_closed_form.rst",
            category="layernorm",
        ),
        png="figures/layernorm/closed_form.png",
    log:
        "logs/figures/layernorm/closed_form.log",
    benchmark:
        "results/benchmarks/figures/layernorm/closed_form.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/layernorm_closed_form.py"


rule layernorm_anisotropy:
    """Embeddings and residual connections: recency against anisotropy, by strength of the residual connection."""
    input:
        library=library("layernorm_anisotropy.py"),
        table="results/layernorm/simulation/anisotropy.csv",
    output:
        pdf="figures/layernorm/anisotropy.pdf",
        svg=report(
            "figures/layernorm/anisotropy.svg",
            caption="../report/layernorm_anisotropy.rst",
            category="layernorm",
        ),
        png="figures/layernorm/anisotropy.png",
    log:
        "logs/figures/layernorm/anisotropy.log",
    benchmark:
        "results/benchmarks/figures/layernorm/anisotropy.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/layernorm_anisotropy.py"


rule layernorm_depth:
    """Depth (ours): recency against it, the recursion over Monte Carlo."""
    input:
        library=library("layernorm_depth.py"),
        table="results/layernorm/simulation/depth.csv",
    output:
        pdf="figures/layernorm/depth.pdf",
        svg=report(
            "figures/layernorm/depth.svg",
            caption="../report/layernorm_depth.rst",
            category="layernorm",
        ),
        png="figures/layernorm/depth.png",
    log:
        "logs/figures/layernorm/depth.log",
    benchmark:
        "results/benchmarks/figures/layernorm/depth.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/layernorm_depth.py"


rule layernorm_random_weights:
    """Random weights (ours): recency of decoders with heads."""
    input:
        library=library("layernorm_random_weights.py"),
        table="results/layernorm/random_weights.parquet",
    output:
        pdf="figures/layernorm/random_weights.pdf",
        svg=report(
            "figures/layernorm/random_weights.svg",
            caption="../report/layernorm_random_weights.rst",
            category="layernorm",
        ),
        png="figures/layernorm/random_weights.png",
    log:
        "logs/figures/layernorm/random_weights.log",
    benchmark:
        "results/benchmarks/figures/layernorm/random_weights.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="layernorm/level", within=config),
    script:
        "../scripts/layernorm_random_weights.py"


rule layernorm_trained:
    """Trained decoders (ours): where they attend without positional encoding, by norm."""
    input:
        library=library("layernorm_trained.py"),
        tables=expand(
            "results/layernorm/trained/{norm}.parquet", norm=LAYERNORM_NETWORKS
        ),
    output:
        pdf="figures/layernorm/trained.pdf",
        svg=report(
            "figures/layernorm/trained.svg",
            caption="../report/layernorm_trained.rst",
            category="layernorm",
        ),
        png="figures/layernorm/trained.png",
    log:
        "logs/figures/layernorm/trained.log",
    benchmark:
        "results/benchmarks/figures/layernorm/trained.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="layernorm/level", within=config),
    script:
        "../scripts/layernorm_trained.py"


rule layernorm_pretrained:
    """Language models: recency of their Gram, trained and untrained."""
    input:
        library=library("layernorm_pretrained.py"),
        grams=GRAMS,
    output:
        pdf="figures/layernorm/pretrained.pdf",
        svg=report(
            "figures/layernorm/pretrained.svg",
            caption="../report/layernorm_pretrained.rst",
            category="layernorm",
        ),
        png="figures/layernorm/pretrained.png",
    log:
        "logs/figures/layernorm/pretrained.log",
    benchmark:
        "results/benchmarks/figures/layernorm/pretrained.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="layernorm/level", within=config),
    script:
        "../scripts/layernorm_pretrained.py"


rule layernorm_emergence:
    """Retrieval (ours): position gaps without norm, with pre-LN and with post-LN."""
    input:
        library=library("layernorm_emergence.py"),
        curves=emergence_shallow("curves.parquet", *NORMALISED.values()),
    output:
        pdf="figures/layernorm/emergence.pdf",
        svg=report(
            "figures/layernorm/emergence.svg",
            caption="../report/layernorm_emergence.rst",
            category="layernorm",
        ),
        png="figures/layernorm/emergence.png",
    log:
        "logs/figures/layernorm/emergence.log",
    benchmark:
        "results/benchmarks/figures/layernorm/emergence.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="layernorm/level", within=config),
    script:
        "../scripts/layernorm_emergence.py"


rule postnorm_set_complement:
    """Set Complement Task: distance to the target against the tokens present, for every scheme, with the laws."""
    input:
        library=library("postnorm_set_complement.py"),
        tests=postnorm_tests("tests.parquet", "set_complement"),
    output:
        pdf="figures/postnorm/set_complement.pdf",
        svg=report(
            "figures/postnorm/set_complement.svg",
            caption="../report/postnorm_set_complement.rst",
            category="postnorm",
        ),
        png="figures/postnorm/set_complement.png",
    log:
        "logs/figures/postnorm/set_complement.log",
    benchmark:
        "results/benchmarks/figures/postnorm/set_complement.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="postnorm/level", within=config),
    script:
        "../scripts/postnorm_set_complement.py"


rule postnorm_resharpening:
    """Resharpening, Section 4.3: logit gaps by the law that they follow, and dispersion of attention."""
    input:
        library=library("postnorm_resharpening.py"),
        tests=postnorm_tests("tests.parquet", "set_complement"),
    output:
        pdf="figures/postnorm/resharpening.pdf",
        svg=report(
            "figures/postnorm/resharpening.svg",
            caption="../report/postnorm_resharpening.rst",
            category="postnorm",
        ),
        png="figures/postnorm/resharpening.png",
    log:
        "logs/figures/postnorm/resharpening.log",
    benchmark:
        "results/benchmarks/figures/postnorm/resharpening.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="postnorm/level", within=config),
    script:
        "../scripts/postnorm_resharpening.py"


rule postnorm_dimension:
    """Width d >= v - 1, Section 4.2: distance against the width of the minimal transformer."""
    input:
        library=library("postnorm_dimension.py"),
        table="results/postnorm/dimension.parquet",
    output:
        pdf="figures/postnorm/dimension.pdf",
        svg=report(
            "figures/postnorm/dimension.svg",
            caption="../report/postnorm_dimension.rst",
            category="postnorm",
        ),
        png="figures/postnorm/dimension.png",
    log:
        "logs/figures/postnorm/dimension.log",
    benchmark:
        "results/benchmarks/figures/postnorm/dimension.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="postnorm/level", within=config),
    script:
        "../scripts/postnorm_dimension.py"


rule postnorm_bema:
    """Averages, Section 4.5: last weights, EMA and BEMA."""
    input:
        library=library("postnorm_bema.py"),
        table="results/postnorm/averaging/tests.parquet",
    output:
        pdf="figures/postnorm/bema.pdf",
        svg=report(
            "figures/postnorm/bema.svg",
            caption="../report/postnorm_bema.rst",
            category="postnorm",
        ),
        png="figures/postnorm/bema.png",
    log:
        "logs/figures/postnorm/bema.log",
    benchmark:
        "results/benchmarks/figures/postnorm/bema.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="postnorm/level", within=config),
    script:
        "../scripts/postnorm_bema.py"


rule postnorm_formal_languages:
    """Maximum retrieval, Dyck and Tomita languages: distance and ROC AUC by length."""
    input:
        library=library("postnorm_formal_languages.py"),
        tests=postnorm_tests("tests.parquet", "languages"),
    output:
        pdf="figures/postnorm/formal_languages.pdf",
        svg=report(
            "figures/postnorm/formal_languages.svg",
            caption="../report/postnorm_formal_languages.rst",
            category="postnorm",
        ),
        png="figures/postnorm/formal_languages.png",
    log:
        "logs/figures/postnorm/formal_languages.log",
    benchmark:
        "results/benchmarks/figures/postnorm/formal_languages.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    params:
        level=lookup(dpath="postnorm/level", within=config),
    script:
        "../scripts/postnorm_formal_languages.py"


rule postnorm_stability:
    """Stability (ours): losses and gradients of every scheme without warmup."""
    input:
        library=library("postnorm_stability.py"),
        table="results/postnorm/stability.parquet",
    output:
        pdf="figures/postnorm/stability.pdf",
        svg=report(
            "figures/postnorm/stability.svg",
            caption="../report/postnorm_stability.rst",
            category="postnorm",
        ),
        png="figures/postnorm/stability.png",
    log:
        "logs/figures/postnorm/stability.log",
    benchmark:
        "results/benchmarks/figures/postnorm/stability.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/postnorm_stability.py"


rule scorecard_figure:
    """Every claim of the papers with its verdict, on one page."""
    input:
        library=library("scorecard_figure.py"),
        scorecard="results/tables/scorecard.csv",
    output:
        pdf="figures/scorecard.pdf",
        svg=report(
            "figures/scorecard.svg",
            caption="../report/scorecard_figure.rst",
            category="scorecard",
        ),
        png="figures/scorecard.png",
    log:
        "logs/figures/scorecard.log",
    benchmark:
        "results/benchmarks/figures/scorecard.tsv"
    conda:
        "../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
        runtime=10,
    script:
        "../scripts/scorecard_figure.py"
