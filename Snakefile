# Four papers on position bias in transformers, replicated as one graph. Start at README.md; rules in reading order.

from snakemake.logging import logger
from snakemake.utils import min_version

min_version("9.27")


configfile: f"{workflow.basedir}/config.yaml"


report: "report/workflow.rst"


include: "rules/common.smk"
include: "rules/language_models.smk"
include: "rules/structural.smk"
include: "rules/emergence.smk"
include: "rules/layernorm.smk"
include: "rules/postnorm.smk"
include: "rules/released.smk"
include: "rules/overview.smk"
include: "rules/rows.smk"


rule all:
    """Every figure and table of every paper, the scorecard, and what made them."""
    default_target: True
    input:
        EVERYTHING,


include: "rules/every_job.smk"


onerror:
    logger.error(
        "A job failed; its log is shown above, if the job has begun. Fix the cause and type the same command again: "
        "finished files stay, and a long job goes on from its last checkpoint."
    )


onsuccess:
    if {rule.name for rule in workflow.dag.targetrules} & {"all", "scorecard"}:
        print(Path(rules.judge_claims.output.txt).read_text(encoding="utf-8"), end="", file=sys.stderr)
