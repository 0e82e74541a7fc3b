# What every wing uses: the checked configuration, lengths, wildcards, the GPU tag, paths of the project, figures and tables
# as outputs. What jobs have in common stands in every_job.smk; which files a wing reads, in its rows.

import json
import os
import re
import sys
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

sys.path.insert(0, str(workflow.basedir))

from position_bias import settings
from position_bias.verdicts import registry
from position_bias.workflow import configuration, digests
from position_bias.workflow.rows import Row, rule_name
from position_card.core import devices, runtime

ROOT = Path(workflow.basedir)
runtime.import_from(ROOT)  # jobs inherit the environment

if set("{}") & set(str(ROOT)):
    sys.exit(f"error: the project lies in {ROOT}, and Snakemake reads braces as wildcards; move it to another folder")


@contextmanager
def in_one_line():
    """Ends the run with the one line of an InputError."""
    try:
        yield
    except runtime.InputError as error:
        sys.exit(f"error: {error}")


with in_one_line():
    for file in workflow.configfiles:
        configuration.require_single_keys(file)
    settings.check(config)
    CLAIMS = registry.every_claim(ROOT / "published/claims.csv")
    CLAIMS += registry.every_addition(ROOT / "published/additions.csv")


PRIMARY = config["primary_dataset"]
HEATMAP, STANDARD, LONG = (config["lengths"][purpose]["tokens"] for purpose in ("heatmap", "standard", "long"))
MORE = [length["tokens"] for length in config["lengths"]["more"]]
PROMPTS = {
    length["tokens"]: length["prompts"]
    for length in [
        *(config["lengths"][purpose] for purpose in ("heatmap", "standard", "long")),
        *config["lengths"]["more"],
    ]
}

# Where a limit of GPUs is that of each submission, jobs go to other machines, and this one cannot tell which GPUs they find.
ELSEWHERE = workflow.resource_scopes.is_local("gpu")
uses_gpu = cache(devices.uses_gpu)

EVIDENCE = config["evidence"]

# How intervals of what is measured on prompts are drawn
INTERVALS = {
    "replicates": config["rollout"]["bootstrap"],
    "level": config["rollout"]["level"],
    "seed": config["seed"],
}

# What is made from files, said in rows by the wings: WING/NAME -> the figure or table; name of a rule -> other files.
FIGURES, TABLES, FILES = {}, {}, {}


def any_of(names):
    """A pattern of names; one that nothing matches where there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


def one_of(*parts):
    """A pattern of the names in parts of the configuration."""
    return any_of(name for part in parts for name in config[part])


wildcard_constraints:
    dataset=one_of("datasets", "hub_datasets"),
    model=one_of("models", "hub_models"),
    seed=r"\d+",
    checkpoint=r"seed\d+/step\d+|hub|(copy|usual)\d+",
    tokenizer=f"offline|{one_of('hub_models')}",
    n="|".join(map(str, PROMPTS)),
    group=re.escape(EVIDENCE["group"] or "") or "(?!)",


def project(file):
    """A file of the project, wherever --directory puts the results."""
    return os.path.relpath(ROOT / file)


def memory(megabytes):
    """What a job asks for: this at first, and as much again each time it is retried."""
    return lambda wildcards, attempt: megabytes * attempt


def gpus(stage, wanted=1):
    """GPUs that a job of a stage asks for: 0 where it will hold none, since a GPU limit must not throttle a laptop."""
    requested = devices.device_request(config, stage)
    if requested == "auto" and ELSEWHERE:
        return wanted
    return wanted if uses_gpu(requested) else 0


def required(given, files, fault):
    """Return the input of a rule that needs what the configuration has `given`. Without it, asking for the rule is an error."""

    def input_files(_):
        return files(given) if given else sys.exit(f"error: {fault}")

    return input_files


def training(stage):
    """What jobs of a stage ask for that train many small networks."""
    return {
        "mem_mb": memory(2000),
        "runtime": config["minutes"][stage],
        "gpu": gpus(stage),
    }


# What jobs ask for that simulate
SIMULATION = {"mem_mb": memory(4000), "runtime": config["minutes"]["simulation"]}


def evidence_tables(pattern):
    """Tables of evidence/ that fit a pattern: those of long runs that are there."""
    return [project(path) for path in sorted((ROOT / "evidence").glob(pattern))]


def wing_outputs(wing):
    """Every figure and table of a wing, and what is made together with them."""
    figures, tables = (
        {item: row for item, row in rows.items() if item.split("/")[0] == wing} for rows in (FIGURES, TABLES)
    )
    return row_outputs(figures, tables)


def row_outputs(figures, tables):
    """What these rows of figures and tables make."""
    return [
        *expand("figures/{item}.{suffix}", item=figures, suffix=["pdf", "svg", "png"]),
        *expand("results/tables/{item}.{suffix}", item=tables, suffix=["csv", "md"]),
        *(path for row in tables.values() for path in row.outputs.values()),
    ]


# What the report calls a paper. The number puts them in order.
CATEGORIES = {
    "scorecard": "1 Scorecard",
    "structural": "2 Herasimchyk et al. 2026",
    "emergence": "3 Wu et al. 2025",
    "layernorm": "4 Kim et al. 2026",
    "postnorm": "5 Zsamboki et al. 2025",
}


def reported_as(name):
    """What the report calls a file. Sorted by name, figures are in order: fig6a is "Figure 06a", before "Figure 10"."""
    published, kind, number, rest = re.fullmatch(r"(published_)?(fig|table|)(\d*)(.*)", name).groups()
    words = {"fig": f"Figure {number:0>2}", "table": f"Table {number:0>2}", "": ""}
    told = f"{words[kind]}{rest}".replace("_", " ")
    return told[0].upper() + told[1:] + (", numbers of the authors" if published else "")


def in_report(path, caption, kind):
    """A file that stands in the report, among the figures or the tables of its paper."""
    paper = re.match(r"(?:figures|results/tables)/(\w+)", path)[1]
    return report(
        path,
        caption=f"../report/{caption}.rst",
        category=CATEGORIES.get(paper, paper),
        subcategory=kind,
        labels=lambda wildcards: {"item": reported_as(Path(path.format(**wildcards)).stem)},
    )


def figure_outputs(item, row):
    """PDF to print, SVG for the report, PNG to look at."""
    wing, _, name = item.rpartition("/")
    return {
        "pdf": f"figures/{item}.pdf",
        "svg": in_report(f"figures/{item}.svg", row.caption or f"{wing}/draw_{name}", "Figures"),
        "png": f"figures/{item}.png",
    }


def table_outputs(item, row):
    """CSV to compute with, Markdown to read and for the report."""
    return {
        "csv": f"results/tables/{item}.csv",
        "md": in_report(f"results/tables/{item}.md", row.caption or item, "Tables"),
    }
