# What all wings end in: the scorecard, what made the results, one page to read, and the tables of evidence/ (evidence/README.md
# has the command of each group). A new commit alone makes nothing out of date: results/provenance.json is of the run which
# last built something.


TABLES["scorecard"] = Row(
    "One verdict for each claim of the papers and for each of our additions, and every comparison behind them; the text is what a run of all or of the scorecard ends with.",
    "verdicts.pages:scorecard_outputs",
    {
        "checks": expand("results/tables/{table}.csv", table=registry.claim_tables(CLAIMS)),
        "claims": project("published/claims.csv"),
        "additions": project("published/additions.csv"),
        "published": project("published/values.csv"),
    },
    {"level": config["rollout"]["level"], "trained": settings.training_lengths(config)},
    outputs={
        "txt": "results/tables/scorecard.txt",
        "additions": "results/tables/additions.csv",
        "additions_md": in_report("results/tables/additions.md", "overview/additions", "Tables"),
        "comparisons": "results/tables/comparisons.csv",
        "comparisons_md": in_report("results/tables/comparisons.md", "overview/comparisons", "Tables"),
    },
    name="judge_claims",
    caption="overview/scorecard",
    group="scorecard",
)
FILES["findings"] = Row(
    "What the report opens with: four questions, and what this run answers.",
    "verdicts.pages:findings",
    {"table": "results/tables/scorecard.csv", "additions": "results/tables/additions.csv"},
    outputs={"rst": "results/findings.rst"},
)
FIGURES["scorecard"] = Row(
    "How many claims of each paper have which verdict.",
    "verdicts.figures:counts",
    {"table": "results/tables/scorecard.csv"},
    name="draw_scorecard",
    caption="overview/draw_scorecard",
    group="scorecard",
)


rule scorecard:
    """The verdict on every claim, and a figure that counts verdicts; ends with how many claims of each kind have which verdict."""
    input:
        wing_outputs("scorecard"),


RESULTS = [
    rules.structural.input,
    rules.emergence.input,
    rules.layernorm.input,
    rules.postnorm.input,
    rules.scorecard.input,
]


rule provenance:
    """Record commit, versions, machine, configuration, and the time of every stage."""
    input:
        results=RESULTS,
    output:
        "results/provenance.json",
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(500),
    script:
        "../scripts/overview/provenance.py"


EVERYTHING = [RESULTS, rules.provenance.output]


rule sweeps:
    """Tables of the learning rates that were tried, to be kept in evidence/."""
    input:
        rules.layernorm_sweep.output,
        rules.postnorm_sweep.output,
        rules.postnorm_sweep_stability.output,


KEPT = [  # files of long trainings, of the wings that the configuration names some of
    path
    for row, named in {
        "emergence_evidence": EVIDENCE["emergence"],
        "emergence_evidence_sinks": EVIDENCE_SINKS,
        "postnorm_evidence": EVIDENCE["postnorm"],
        "structural_evidence": EVIDENCE["structural"],
        "structural_evidence_pretrained": EVIDENCE["pretrained"],
        "structural_evidence_recall": [*EVIDENCE["pretrained"], *EVIDENCE["recall"]],
        "structural_evidence_recall_runs": EVIDENCE["recall"],
        "structural_evidence_curve": EVIDENCE["curve"],
        "structural_evidence_curve_runs": EVIDENCE["curve"],
        "structural_evidence_initialization": EVIDENCE["initialization"],
        "structural_evidence_sink": EVIDENCE["sink"],
    }.items()
    if named
    for path in FILES[row].outputs.values()
]


rule evidence:
    """Tables of one group of long trainings, to be kept in evidence/."""
    input:
        required(
            KEPT and EVIDENCE["group"],
            lambda group: expand(KEPT, group=group),
            "config: evidence names no group, or nothing to keep of it; add an overlay of config/evidence/ to --configfile",
        ),


PUBLISHED = rules.all_published.input if config["released"]["source"] else []


rule report:
    """Four findings, then figures, tables and captions of everything, grouped by paper, and how each was made.

    The figures of the released numbers are among them where they are built.
    """
    input:
        EVERYTHING,
        FILES["findings"].outputs["rst"],
    output:
        "results/report.html",
    log:
        "logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    localrule: True
    resources:
        mem_mb=memory(2000),
        runtime=20,
    params:
        targets=lambda _: ["all", "all_published"] if PUBLISHED and all(map(os.path.exists, PUBLISHED)) else ["all"],
    run:
        Path(f"{log}.json").write_text(json.dumps(config))
        shell(
            "{sys.executable:q} -m snakemake {params.targets} --snakefile {ROOT}/Snakefile --configfile {log}.json "
            "--report {output:q} --nolock > {log:q} 2>&1"
        )
