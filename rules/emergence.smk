# Wu et al. 2025: attention-only networks on a synthetic task. Out: results/emergence/{vocabulary}/{study}/depth{depth}/
# with the weights, learning curves and attention of all networks and seeds of a study at one depth. A study is what one
# figure shows (position_bias/emergence/studies.py). A killed training resumes from checkpoints/emergence/.

# What figures show, by vocabulary and study
BY_DEPTH = {
    "fig4": ("gaussian", "plain"),
    "fig5": ("gaussian", "residual"),
    "fig9": ("fixed", "plain"),
    "fig10": ("fixed", "residual"),
}
BY_BIAS = {
    "fig3": ("gaussian", "ends"),
    "fig6a": ("gaussian", "first"),
    "fig6b": ("gaussian", "middle"),
    "fig6c": ("gaussian", "last"),
    "fig11a": ("fixed", "ends"),
    "fig11b": ("fixed", "first"),
    "fig11c": ("fixed", "middle"),
    "fig11d": ("fixed", "last"),
}
OF_MAPS = {"fig7": ("gaussian", "plain"), "fig12": ("fixed", "plain")}
OF_SINKS = {
    "fig8a": ("gaussian", "plain"),
    "fig8b": ("gaussian", "window"),
    "fig8c": ("gaussian", "prefix"),
    "fig13a": ("fixed", "plain"),
    "fig13b": ("fixed", "window"),
    "fig13c": ("fixed", "prefix"),
}


EMERGENCE_STUDIES = dict.fromkeys(
    [*BY_DEPTH.values(), *BY_BIAS.values(), *OF_SINKS.values(), ("isotropic", "plain")]
)


wildcard_constraints:
    vocabulary="|".join(EMERGENCE["depths"]),
    study="|".join(
        dict.fromkeys(study for _, study in [*EMERGENCE_STUDIES, *NORMALISED.values()])
    ),
    depth=r"[1-9]\d*",


rule emergence_train:
    """Train the networks of a study at one depth, every seed of them, as stacks of small models."""
    input:
        library=library("emergence_train.py"),
    output:
        weights="results/emergence/{vocabulary}/{study}/depth{depth}/weights.safetensors",
        curves="results/emergence/{vocabulary}/{study}/depth{depth}/curves.parquet",
        run="results/emergence/{vocabulary}/{study}/depth{depth}/run.csv",
    log:
        "logs/emergence/{vocabulary}/{study}/depth{depth}.log",
    benchmark:
        "results/benchmarks/emergence/{vocabulary}/{study}/depth{depth}.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(3000),
        runtime=1440,
        gpu=GPU,
    params:
        task=lookup(dpath="emergence/task", within=config),
        batch=lookup(dpath="emergence/training/batch", within=config),
        learning_rate=lookup(dpath="emergence/training/learning_rate", within=config),
        weight_decay=lookup(dpath="emergence/training/weight_decay", within=config),
        decay=lookup(dpath="emergence/decay", within=config),
        every=lookup(dpath="emergence/testing/every", within=config),
        along=lookup(dpath="emergence/testing/sequences_along", within=config),
        sequences=lookup(dpath="emergence/testing/sequences", within=config),
        networks=lookup(dpath="emergence/networks/{study}", within=config),
        iterations=emergence_iterations,
        seeds=emergence_seeds,
    script:
        "../scripts/emergence_train.py"


rule emergence_attention:
    """Attention of the trained networks of a study, and how often tokens are sinks, beside untrained and uniform ones."""
    input:
        library=library("emergence_attention.py"),
        weights="results/emergence/{vocabulary}/{study}/depth{depth}/weights.safetensors",
    output:
        sinks="results/emergence/{vocabulary}/{study}/depth{depth}/sinks.parquet",
        maps="results/emergence/{vocabulary}/{study}/depth{depth}/attention.safetensors",
    log:
        "logs/emergence/{vocabulary}/{study}/depth{depth}_attention.log",
    benchmark:
        "results/benchmarks/emergence/{vocabulary}/{study}/depth{depth}_attention.tsv"
    conda:
        "../envs/synthetic.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
        runtime=60,
    params:
        task=lookup(dpath="emergence/task", within=config),
        decay=lookup(dpath="emergence/decay", within=config),
        sequences=lookup(dpath="emergence/sinks/sequences", within=config),
        thresholds=lookup(dpath="emergence/sinks/thresholds", within=config),
        networks=lookup(dpath="emergence/networks/{study}", within=config),
    script:
        "../scripts/emergence_attention.py"
