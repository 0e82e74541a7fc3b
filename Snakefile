# Four papers on position bias in transformers, replicated as one graph. Start at README.md; rules in reading order.

from snakemake.utils import min_version

min_version("9.27")


configfile: f"{workflow.basedir}/config.yaml"


include: "rules/common.smk"
include: "rules/corpus.smk"
include: "rules/models.smk"
include: "rules/measure.smk"
include: "rules/rollout.smk"
include: "rules/emergence.smk"
include: "rules/layernorm.smk"
include: "rules/postnorm.smk"
include: "rules/evidence.smk"
include: "rules/figures.smk"
include: "rules/tables.smk"
include: "rules/published.smk"
include: "rules/provenance.smk"


rule all:
    """Every figure and table of every paper, the scorecard, and what made them."""
    default_target: True
    input:
        rules.scorecard.output,
        rules.scorecard_figure.output,
        rules.structural.input,
        rules.emergence.input,
        rules.layernorm.input,
        rules.postnorm.input,
        rules.provenance.output,


include: "rules/report.smk"


onerror:
    print(
        "A job failed; its log is shown above. Mend the cause and type the same command again: finished files stay,",
        "training resumes from its last checkpoint.",
        file=sys.stderr,
    )
