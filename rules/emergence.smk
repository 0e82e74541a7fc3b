# Wu et al. 2025: attention-only networks on a synthetic task. Out: results/emergence/{vocabulary}/{study}/depth{depth}/
# with the weights, learning curves and attention of all networks and seeds of a study at one depth. A study is what one
# figure shows (position_bias/emergence/runs.py). A killed training resumes from checkpoints/emergence/.

from position_bias.emergence import runs as emergence_runs
from position_bias.emergence.runs import ALL_SINKS, BY_BIAS, BY_DEPTH, IN_TABLES, OF_MAPS

EMERGENCE = config["emergence"]
study_runs = partial(emergence_runs.runs, EMERGENCE)
with_mask_alone = partial(emergence_runs.with_mask_alone, EMERGENCE)
CURVES, SINKS = "results/emergence/{run}/curves.parquet", "results/emergence/{run}/sinks.parquet"


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
        seeds=lambda wildcards: emergence_runs.seeds(EMERGENCE, wildcards.study, int(wildcards.depth)),
        training=lambda wildcards: emergence_runs.training(EMERGENCE, wildcards.study),
        testing={name: EMERGENCE["testing"][name] for name in ("every", "sequences_along", "sequences")},
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
        sequences=config["emergence"]["sinks"]["sequences"],
        thresholds=config["emergence"]["sinks"]["thresholds"],
    script:
        "../scripts/emergence/attention.py"


# Figures, tables and what is kept of long runs: a row each, see rules/rows.smk.

EMERGENCE_LEVEL = {"level": EMERGENCE["level"]}
EMERGENCE_TASK = {"task": EMERGENCE["task"]}
SINK_THRESHOLD = {"threshold": EMERGENCE["sinks"]["threshold"]}
EMERGENCE_THEORY = ("convergence", "decay", "rope", "peaks")  # curves of theorems
ALL_CURVES = collect(CURVES, run=study_runs(*IN_TABLES))

# What evidence/ keeps of the paper's training stands in front in the figures of this run, unless this run is of that length.
KEPT_RUNS = evidence_tables("emergence/*/runs.csv") if config["scale"] != "paper" else []
kept_groups = in_one_line()(emergence_runs.kept_groups)
# The tables of this name of the groups in evidence/ that trained these studies, as printed or as released
kept_tables = lambda table, *shown, settings="paper", runs=KEPT_RUNS: [
    path
    for groups in [kept_groups(runs, *shown, settings=settings)]
    for path in evidence_tables(f"emergence/*/{table}.csv")
    if str(Path(path).parent) in groups
]


FIGURES |= {
    f"emergence/{figure}": Row(
        "Figures 4, 5, 9, 10: what depth does without bias in the training data.",
        "emergence.figures:by_depth",
        {
            "tests": collect(CURVES, run=study_runs(shown)),
            "evidence": kept_tables("curves", shown),
            "evidence_accuracy": kept_tables("accuracy", shown),
        },
        EMERGENCE_LEVEL | EMERGENCE_TASK,
        caption="emergence/draw_by_depth",
    )
    for figure, shown in BY_DEPTH.items()
    if study_runs(shown)
}
FIGURES |= {
    f"emergence/{figure}": Row(
        "Figures 3, 6, 11: gaps after training on answers at certain positions.",
        "emergence.figures:by_bias",
        {"tests": collect(CURVES, run=study_runs(shown)), "evidence": kept_tables("curves", shown)},
        EMERGENCE_LEVEL | EMERGENCE_TASK,
        caption="emergence/draw_by_bias",
    )
    for figure, shown in BY_BIAS.items()
    if study_runs(shown)
}
FIGURES |= {
    f"emergence/{figure}": Row(
        "Figures 7, 12: attention of a network under the causal mask alone.",
        "emergence.figures_attention:maps",
        {"maps": f"results/emergence/{run}/attention.safetensors"},
        {
            "iterations": EMERGENCE["training"]["iterations"]["unbiased"],
            "sequences": EMERGENCE["sinks"]["sequences"],
        },
        caption="emergence/draw_maps",
    )
    for figure, shown in OF_MAPS.items()
    for run in with_mask_alone(shown)
}
FIGURES |= {
    f"emergence/{figure}": Row(
        "Figures 8, 13: attention sinks, beside untrained networks and uniform attention.",
        "emergence.figures_attention:sinks_of_networks",
        {
            "sinks": collect(SINKS, run=run),
            "evidence": kept_tables("sinks", shown),
            "evidence_runs": kept_tables("runs", shown),
        },
        EMERGENCE_LEVEL | SINK_THRESHOLD | {"iterations": EMERGENCE["training"]["iterations"]["unbiased"]},
        caption="emergence/draw_sinks",
    )
    for figure, shown in ALL_SINKS.items()
    for run in with_mask_alone(shown)
}

if study_runs(("gaussian", "window")):
    FIGURES["emergence/windows"] = Row(
        "Gaps under sliding windows, after Theorem 4.2 (our addition).",
        "emergence.figures:by_bias",
        {
            "tests": collect(CURVES, run=study_runs(("gaussian", "window"))),
            "evidence": kept_tables("curves", ("gaussian", "window")),
        },
        EMERGENCE_LEVEL | EMERGENCE_TASK,
    )
FIGURES["emergence/released_code"] = Row(
    "Figures 2, 4: gaps by depth as printed, and in the settings of the released code (our addition), from evidence/.",
    "emergence.figures:printed_and_released",
    {
        settings_as: kept_tables(
            "curves", ("gaussian", "plain"), settings=settings, runs=evidence_tables("emergence/*/runs.csv")
        )
        for settings_as, settings in (("printed", "paper"), ("released", "released"))
    },
    EMERGENCE_LEVEL,
)
FIGURES["emergence/fig1"] = Row(
    "Figure 1: masks as matrices and as graphs, with their centre nodes.",
    "emergence.figures_attention:masks_and_graphs",
)
if without_bias := study_runs(("gaussian", "plain"), ("gaussian", "residual")):
    FIGURES["emergence/fig2"] = Row(
        "Figure 2: gaps without bias in the training data, by encoding and depth.",
        "emergence.figures:fig2",
        {
            "tests": collect(CURVES, run=without_bias),
            "evidence": kept_tables("curves", ("gaussian", "plain"), ("gaussian", "residual")),
        },
        EMERGENCE_LEVEL,
    )
if plain := study_runs(("gaussian", "plain")):
    FIGURES["emergence/learning_curves"] = Row(
        "The gap of the first and the last item while networks without residual connections learn (our addition).",
        "emergence.figures:along_training",
        {"tests": collect(CURVES, run=plain)},
        EMERGENCE_LEVEL,
    )
if "causal/none" in EMERGENCE["networks"]["plain"]:
    FIGURES["emergence/long_training"] = Row(
        "Gaps over the whole length of the paper's training (our addition), from evidence/.",
        "emergence.figures:long_and_short_training",
        {
            "long": project("evidence/emergence/mask-by-depth/curves.csv"),
            "older": project("evidence/emergence/depth.csv"),  # depths that the first lacks
            "tests": collect(CURVES, run=plain),
        },
        EMERGENCE_LEVEL | {"last": EMERGENCE["testing"]["last_kept"]},
    )
FIGURES["emergence/theorems"] = Row(
    "Theorems 4.1-4.3, 4.5 and 4.7: where multi-layer attention goes without learning.",
    "emergence.figures_attention:theorems",
    {name: f"results/theory/emergence/{name}.csv" for name in EMERGENCE_THEORY},
)
TABLES |= {
    "emergence/gaps": Row(
        "Every accuracy gap with its interval over seeds, its prediction and its verdict.",
        "emergence.checks:all_gaps",
        {
            "tests": ALL_CURVES,
            "predicted": project("published/predictions.csv"),
        },
        EMERGENCE_LEVEL | {"share": EMERGENCE["testing"]["settled"]},
    ),
    "emergence/checks": Row(
        "Verdicts on what Wu et al. claim of several networks together, and of attention sinks.",
        "emergence.checks:verdicts",
        {
            "curves": ALL_CURVES,
            "sinks": collect(SINKS, run=[run for run in study_runs(*ALL_SINKS.values()) if run.shallow]),
            "evidence": evidence_tables("emergence/*/*.csv"),
            "seen": project("evidence/emergence/seen.csv"),
            "predicted": project("published/predictions.csv"),
        },
        EMERGENCE_LEVEL | SINK_THRESHOLD | {"scale": config["scale"]},
        readable="verdicts.judge:readable",
    ),
    "emergence/theorems": Row(
        "Verdicts on the theorems, as printed and with corrected constants, and the curves of their figure.",
        "emergence.checks_theory:theorem_tables",
        {"predicted": project("published/predictions.csv")},
        values={"numbers": EMERGENCE["theory"], "scale": config["scale"]},
        outputs={name: f"results/theory/emergence/{name}.csv" for name in EMERGENCE_THEORY},
    ),
}

WITH_SINKS = [str(run) for run in study_runs(*ALL_SINKS.values()) if run.shallow]
EVIDENCE_SINKS = [run for run in EVIDENCE["emergence"] if run in WITH_SINKS]

FILES |= {
    "emergence_evidence": Row(
        "Gaps, accuracy and loss at every test of long trainings, and the accuracy by position at their end.",
        "emergence.accuracy_gaps:evidence",
        {
            "tests": collect(CURVES, run=EVIDENCE["emergence"]),
            "runs": collect("results/emergence/{run}/run.csv", run=EVIDENCE["emergence"]),
        },
        {"scale": config["scale"]},
        outputs={name: f"results/evidence/emergence/{{group}}/{name}.csv" for name in ("curves", "accuracy", "runs")},
        log="logs/evidence/emergence/{group}.log",
    ),
    "emergence_evidence_sinks": Row(
        "Attention sinks of the networks of long trainings, at every threshold.",
        "emergence.accuracy_gaps:evidence_of_sinks",
        {"sinks": collect(SINKS, run=EVIDENCE_SINKS)},
        {"scale": config["scale"]},
        outputs={"sinks": "results/evidence/emergence/{group}/sinks.csv"},
        log="logs/evidence/emergence/{group}_sinks.log",
    ),
}


rule emergence:
    """Every figure and table of Wu et al. 2025."""
    input:
        wing_outputs("emergence"),
