# Wu et al. 2025: attention-only networks on a synthetic task. Out: results/emergence/{vocabulary}/{study}/depth{depth}/
# with the weights, learning curves and attention of all networks and seeds of a study at one depth. A study is what one
# figure shows (position_bias/emergence/studies.py). A killed training resumes from checkpoints/emergence/.


include: "files/emergence.smk"


wildcard_constraints:
    vocabulary="|".join(EMERGENCE["depths"]),
    study="|".join(EMERGENCE["networks"]),
    depth=r"[1-9]\d*",


rule emergence_train:
    """Train the networks of a study at one depth, every seed of them, as stacks of small models."""
    output:
        weights="results/emergence/{vocabulary}/{study}/depth{depth}/weights.safetensors",
        curves="results/emergence/{vocabulary}/{study}/depth{depth}/curves.parquet",
        run="results/emergence/{vocabulary}/{study}/depth{depth}/run.csv",
    log:
        "logs/emergence/{vocabulary}/{study}/depth{depth}.log",
    conda:
        "../envs/synthetic.yaml"
    resources:
        mem_mb=memory(3000),
        runtime=config["minutes"]["emergence"],
        gpu=gpus("emergence"),
    params:
        task=config["emergence"]["task"],
        decay=config["emergence"]["decay"],
        networks=lookup(dpath="emergence/networks/{study}", within=config),
        seeds=emergence_seeds,
        training=emergence_training,
        testing=EMERGENCE_TESTS,
    script:
        "../scripts/emergence/train.py"


rule emergence_attention:
    """Attention of the trained networks of a study, and how often tokens are sinks, beside untrained and uniform ones."""
    input:
        weights="results/emergence/{vocabulary}/{study}/depth{depth}/weights.safetensors",
    output:
        sinks="results/emergence/{vocabulary}/{study}/depth{depth}/sinks.parquet",
        maps="results/emergence/{vocabulary}/{study}/depth{depth}/attention.safetensors",
    log:
        "logs/emergence/{vocabulary}/{study}/depth{depth}_attention.log",
    conda:
        "../envs/synthetic.yaml"
    resources:
        mem_mb=memory(2000),
        runtime=60,
    params:
        task=config["emergence"]["task"],
        decay=config["emergence"]["decay"],
        sequences=config["emergence"]["sinks"]["sequences"],
        thresholds=config["emergence"]["sinks"]["thresholds"],
        networks=lookup(dpath="emergence/networks/{study}", within=config),
    script:
        "../scripts/emergence/attention.py"


rule emergence_draw_fig1:
    """Figure 1: masks as matrices and as graphs, with their centre nodes."""
    output:
        **drawn("emergence/fig1"),
    script:
        "../scripts/emergence/draw_fig1.py"


rule emergence_draw_fig2:
    """Figure 2: gaps without bias in the training data, by encoding and depth."""
    input:
        curves=emergence_curves(("gaussian", "plain"), ("gaussian", "residual")),
    output:
        **drawn("emergence/fig2"),
    params:
        level=config["emergence"]["level"],
    script:
        "../scripts/emergence/draw_fig2.py"


rule emergence_draw_by_depth:
    """Figures 4, 5, 9, 10: what depth does without bias in the training data."""
    input:
        curves=emergence_shown(BY_DEPTH, emergence_curves),
    output:
        **drawn("emergence/{figure}", "emergence/draw_by_depth"),
    wildcard_constraints:
        figure="|".join(BY_DEPTH),
    params:
        level=config["emergence"]["level"],
        task=config["emergence"]["task"],
    script:
        "../scripts/emergence/draw_by_depth.py"


rule emergence_draw_by_bias:
    """Figures 3, 6, 11: gaps after training on answers at certain positions."""
    input:
        curves=emergence_shown(BY_BIAS, emergence_curves),
    output:
        **drawn("emergence/{figure}", "emergence/draw_by_bias"),
    wildcard_constraints:
        figure="|".join(BY_BIAS),
    params:
        level=config["emergence"]["level"],
        task=config["emergence"]["task"],
    script:
        "../scripts/emergence/draw_by_bias.py"


rule emergence_draw_maps:
    """Figures 7, 12: attention of a network under the causal mask alone."""
    input:
        maps=emergence_shown(
            OF_MAPS,
            partial(emergence_shallow, "attention.safetensors"),
            emergence_without_encoding,
        ),
    output:
        **drawn("emergence/{figure}", "emergence/draw_maps"),
    wildcard_constraints:
        figure="|".join(OF_MAPS),
    script:
        "../scripts/emergence/draw_maps.py"


rule emergence_draw_sinks:
    """Figures 8, 13: attention sinks, beside untrained networks and uniform attention."""
    input:
        sinks=emergence_shown(
            OF_SINKS,
            partial(emergence_shallow, "sinks.parquet"),
            emergence_without_encoding,
        ),
    output:
        **drawn("emergence/{figure}", "emergence/draw_sinks"),
    wildcard_constraints:
        figure="|".join(OF_SINKS),
    params:
        level=config["emergence"]["level"],
        threshold=config["emergence"]["sinks"]["threshold"],
    script:
        "../scripts/emergence/draw_sinks.py"


rule emergence_draw_learning_curves:
    """Loss, accuracy and gaps while networks without residual connections learn (our addition)."""
    input:
        curves=emergence_curves(("gaussian", "plain")),
    output:
        **drawn("emergence/learning_curves"),
    params:
        level=config["emergence"]["level"],
        task=config["emergence"]["task"],
    script:
        "../scripts/emergence/draw_learning_curves.py"


rule emergence_draw_long_training:
    """Gaps over the whole length of the paper's training (our addition), from evidence/."""
    input:
        evidence=[
            project("evidence/emergence/mask-by-depth/curves.csv"),
            project("evidence/emergence/depth.csv"),  # depths that the first lacks
        ],
        curves=emergence_curves(("gaussian", "plain")),
    output:
        **drawn("emergence/long_training"),
    params:
        level=config["emergence"]["level"],
        last=config["emergence"]["testing"]["last_kept"],
    script:
        "../scripts/emergence/draw_long_training.py"


rule emergence_draw_scales:
    """Figures 2, 4, 6, 11: gaps after short training and after that of the paper, from evidence/ (our addition)."""
    input:
        curves=emergence_scales(emergence_curves),
        sinks=emergence_scales(emergence_sinks),
        evidence=kept("emergence/*/*.csv"),
    output:
        **drawn("emergence/scales"),
    params:
        evidence=EVIDENCE_GROUPS,
        level=config["emergence"]["level"],
        threshold=config["emergence"]["sinks"]["threshold"],
    script:
        "../scripts/emergence/draw_scales.py"


rule emergence_draw_scales_sinks:
    """Figure 8: attention sinks after short training and after that of the paper, from evidence/ (our addition)."""
    input:
        curves=emergence_scales(emergence_curves),
        sinks=emergence_scales(emergence_sinks),
        evidence=kept("emergence/*/*.csv"),
    output:
        **drawn("emergence/scales_sinks"),
    params:
        evidence=EVIDENCE_GROUPS,
        level=config["emergence"]["level"],
        threshold=config["emergence"]["sinks"]["threshold"],
    script:
        "../scripts/emergence/draw_scales_sinks.py"


rule emergence_draw_theorems:
    """Theorems 4.1-4.3, 4.5 and 4.7: where multi-layer attention goes without learning."""
    input:
        convergence="results/theory/emergence/convergence.csv",
        decay="results/theory/emergence/decay.csv",
        rope="results/theory/emergence/rope.csv",
        peaks="results/theory/emergence/peaks.csv",
    output:
        **drawn("emergence/theorems"),
    script:
        "../scripts/emergence/draw_theorems.py"


rule emergence_gaps:
    """Every accuracy gap with its interval over seeds, its prediction and its verdict."""
    input:
        curves=emergence_curves(*EMERGENCE_STUDIES),
        predictions=project("published/predictions.csv"),
    output:
        **tabled("emergence/gaps"),
    params:
        level=config["emergence"]["level"],
        settled=config["emergence"]["testing"]["settled"],
    script:
        "../scripts/emergence/gaps.py"


rule emergence_theorems:
    """Verdicts on the theorems, as printed and with corrected constants, and the curves of their figure."""
    output:
        **tabled("emergence/theorems"),
        convergence="results/theory/emergence/convergence.csv",
        decay="results/theory/emergence/decay.csv",
        rope="results/theory/emergence/rope.csv",
        peaks="results/theory/emergence/peaks.csv",
    params:
        numbers=config["emergence"]["theory"],
        scale=config["scale"],
    script:
        "../scripts/emergence/theorems.py"


rule emergence_checks:
    """Verdicts on what Wu et al. claim of several networks together, and of attention sinks."""
    input:
        curves=emergence_curves(*EMERGENCE_STUDIES),
        sinks=emergence_shallow("sinks.parquet", *OF_SINKS.values()),
        evidence=kept("emergence/*/*.csv"),
        seen=project("evidence/emergence/seen.csv"),
        predictions=project("published/predictions.csv"),
    output:
        **tabled("emergence/checks"),
    params:
        evidence=EVIDENCE_GROUPS,
        level=config["emergence"]["level"],
        scale=config["scale"],
        threshold=config["emergence"]["sinks"]["threshold"],
    script:
        "../scripts/emergence/checks.py"


rule emergence_evidence:
    """Gaps, accuracy and loss at every test of long trainings, and the accuracy by position at their end."""
    input:
        curves=evidence_emergence("curves.parquet"),
        runs=evidence_emergence("run.csv"),
    output:
        curves="results/evidence/emergence/{group}/curves.csv",
        accuracy="results/evidence/emergence/{group}/accuracy.csv",
        runs="results/evidence/emergence/{group}/runs.csv",
    log:
        "logs/evidence/emergence/{group}.log",
    params:
        scale=config["scale"],
    script:
        "../scripts/emergence/evidence.py"


rule emergence_evidence_sinks:
    """Attention sinks of the networks of long trainings, at every threshold."""
    input:
        sinks=evidence_emergence("sinks.parquet", EVIDENCE_SINKS),
    output:
        "results/evidence/emergence/{group}/sinks.csv",
    log:
        "logs/evidence/emergence/{group}_sinks.log",
    params:
        scale=config["scale"],
    script:
        "../scripts/emergence/evidence_sinks.py"


rule emergence:
    """Every figure and table of Wu et al. 2025."""
    input:
        rules.emergence_draw_fig1.output,
        rules.emergence_draw_fig2.output,
        rules.emergence_draw_learning_curves.output,
        rules.emergence_draw_long_training.output,
        rules.emergence_draw_theorems.output,
        rules.emergence_gaps.output,
        rules.emergence_checks.output,
        rules.emergence_theorems.output,
        expand(
            "figures/emergence/{figure}.{suffix}",
            figure=[
                *emergence_figures(BY_DEPTH | BY_BIAS),
                *emergence_without_encoding(OF_MAPS | OF_SINKS),
                *(["scales", "scales_sinks"] if at_both_scales() else []),
            ],
            suffix=["pdf", "svg", "png"],
        ),
