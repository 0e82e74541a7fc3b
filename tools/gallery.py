"""Write docs/gallery/ from a finished default run: every figure with what it shows, its verdicts and its command.

Numbers of verdicts go into the pages that count them.

    PYTHONPATH=. python tools/gallery.py [RESULTS]        (make keep)

RESULTS is the folder of the run, by default this one. What the paper says there are the claims that name the figure in
published/claims.csv, with the numbers that the paper prints. Verdicts are those of the run's own scorecard, captions
those of its report, and times the CPU time that Snakemake measured.
"""

import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pandas as pd
import yaml
from PIL import Image

from position_bias.verdicts import pages
from position_bias.verdicts.registry import MODEL, PRETRAINED, shows
from position_bias.verdicts.rule import ERRATUM, UNTESTABLE
from position_card.core.runtime import InputError, whole_file
from tools import workflow
from tools.workflow import Job, Rule

ROOT = Path(__file__).parents[1]
WIDTH = 760  # pixels
PAPERS = {
    "structural": "Herasimchyk et al. 2026: depth, residual mixing, ALiBi",
    "emergence": "Wu et al. 2025: masks, encodings, training data",
    "layernorm": "Kim et al. 2026: LayerNorm and recency",
    "postnorm": "Zsamboki et al. 2025: norms after attention",
}
REPORT = ROOT / "docs/replication.md"
COUNTED = (ROOT / "docs/running.md", REPORT)  # pages that say how many claims hold and fail
FROM, TO = "<!-- written by make keep -->", "<!-- up to here -->"
TRAINING = "<!-- written by make keep: training -->"  # likewise, in the report
CHANGES = "<!-- written by make keep: changes -->"
INTRODUCTION = """Every figure of the default run on one subject, with the claims that point to it. `make keep` writes
this page from a finished run. All images are drawn by this workflow; none is the paper's. *At a smaller scale* means
that the claim is about larger models, more prompts or longer training than this run has. Of the two times, the first
builds all that the figure needs, and the second only draws it: CPU time of this run. Two cores take about half as
long where there are many jobs; starting Snakemake adds some seconds. Beside a verdict stands the one comparison that
decides it. A claim can be undecided although this one is clear: [the rule](../verdicts.md) counts all."""
WORDS = {  # that only the claims and figures of one paper use
    "layernorm": """*Recency* is the mean score of the latest quarter of the keys less that of the earliest quarter; the
*Gram matrix* holds the cosines between the inputs of attention; *rho* is the strength of the residual connection. The
paper is known here from a review page: *reply*, *referee report* and *what settles it* are parts of that page, and
*first version* is what public descriptions say of the paper's first version."""
}
ELSEWHERE = {  # scale -> what is said of numbers that a figure of the default run does not show
    PRETRAINED: ", of a pretrained model",
    **dict.fromkeys(("longer", "paper"), ", after longer training than this figure shows"),
}
BIG_MODELS = "evidence/structural/released/"  # tables of the models of the paper itself
OF_MODELS = ELSEWHERE | {"paper": ", of the paper's own models, which this figure does not show"}
OUTCOMES = {  # verdict -> the words that begin the sentence on the claims with this verdict
    "holds": "This holds",
    "fails": "This fails",
    "no effect": "This shows no effect beyond the margin",
    "undecided": "This is undecided",
    UNTESTABLE: "This cannot be tested in this run",
    ERRATUM: "This is printed with an error",
}


def page(paper: str, results: Path, jobs: Sequence[Job], rules: Mapping[str, Rule], scores: pd.DataFrame) -> str:
    """The page of one paper, in Markdown; figures that share a caption stand together below it.

    Raises InputError where a figure of the run is not there.
    """
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    maker = {output: job for job in jobs for output in job.output}
    lines = [f"# `{paper}`: {PAPERS[paper]}", "", INTRODUCTION]
    lines += ["", WORDS[paper]] if paper in WORDS else []
    drawn, by_caption = figures(paper, jobs), defaultdict(list)
    for figure in drawn:
        if not (image := _image(results, figure)).is_file():
            raise InputError(f"{image} is not there; build it first: snakemake {figure}")
    for figure in drawn:
        by_caption[_caption(rules[maker[figure].rule], maker[figure], config)].append(figure)
    for caption, together in by_caption.items():
        several = len(together) > 1
        if several:
            names = ", ".join(_heading(figure).removeprefix("Figure ") for figure in together)
            lines += ["", f"## Figures {names}", "", caption]
        for figure in together:
            lines += ["", f"{'###' if several else '##'} {_heading(figure)}", ""]
            lines += [f"![{_title(_image(results, figure))}]({paper}/{Path(figure).stem}.png)", ""]
            claims = scores[[shows(shown, figure) for shown in scores["shown"]]]
            long, big = (any(of in path for path in maker[figure].input) for of in ("evidence/", BIG_MODELS))
            lines += [came_out(claims), "", *([] if several else [caption, ""]), *_claims(claims, long, big)]
            lines += ["", f"Build it: `snakemake {figure}` ({_minutes(figure, maker, results)})"]
    return "\n".join(lines) + "\n"


def figures(paper: str, jobs: Iterable[Job]) -> list[str]:
    """The figures of a paper, as PDF: those with a number in its order, then those that we added."""
    made = [path for job in jobs for path in job.output if re.fullmatch(rf"figures/{paper}/.*\.pdf", path)]
    return sorted(made, key=_place)


def shrink(image: Path, small: Path) -> None:
    """Write `image` again, `WIDTH` pixels wide and in 256 colours, rare ones among them, without its texts."""
    with Image.open(image) as opened:
        height = round(opened.height * WIDTH / opened.width)
        drawn = opened.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
    with whole_file(small) as partial:
        palette = drawn.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        palette.save(partial, optimize=True)


def _place(path: str) -> tuple[bool, list[int | str]]:
    return not Path(path).stem.startswith("fig"), workflow.natural(path)


def _image(results: Path, figure: str) -> Path:
    return (results / figure).with_suffix(".png")


def _heading(figure: str) -> str:
    return re.sub(r"^fig(\d+)", r"Figure \1", Path(figure).stem).replace("_", " ")


def _title(image: Path) -> str:
    """The sentence that the figure carries as its title."""
    with Image.open(image) as opened:
        return " ".join(str(opened.info.get("Title", image.stem)).split())


def _caption(rule: Rule, made: Job, config: Mapping[str, object]) -> str:
    """The caption of the report, of the default run, as one paragraph."""
    (caption,) = rule.captions
    job = SimpleNamespace(config=config, params=made.params, wildcards=made.wildcards)
    template = jinja2.Template((ROOT / caption).read_text(), undefined=jinja2.StrictUndefined)
    text = template.render(snakemake=job)
    return " ".join(text.replace("``", "`").split())


def came_out(claims: pd.DataFrame) -> str:
    """What came out of the claims that a figure shows: a sentence for each verdict, with the titles of its claims."""
    if not len(claims):
        return "**What came out**: this figure illustrates; no claim is judged from it."
    smaller = ~claims["settled"] & (claims["verdict"] != UNTESTABLE)
    groups = [
        (said + scale, claims.loc[(claims["verdict"] == verdict) & (smaller == bool(scale)), "title"])
        for verdict, said in OUTCOMES.items()
        for scale in ("", " at a smaller scale")
    ]
    return "**What came out**. " + " ".join(
        f"{said}: *{'*; *'.join(titles)}*." for said, titles in groups if len(titles)
    )


def _claims(scores: pd.DataFrame, long: bool, big: bool = False) -> Iterator[str]:
    """A line for each claim: what it says, what the paper prints, and what this run found.

    `long` tells whether the figure shows the long runs, whose numbers decide wherever there are any, and `big` whether
    it shows the paper's own models.
    """
    for statement, row in zip(pages.as_stated(scores), scores.to_dict("records"), strict=True):
        said = (
            f"- **{row['item']}**: {statement}." if statement[-1] not in "?)" else f"- **{row['item']}**: {statement}"
        )
        printed = f" The paper prints {row['published']}." if isinstance(row["published"], str) else ""
        smaller = "" if row["settled"] or row["verdict"] == UNTESTABLE else ", at a smaller scale"
        number = f"{row['measured']:.3g} [{row['low']:.3g}, {row['high']:.3g}]"
        shown = big if (row["unit"], row["scale"]) == (MODEL, "paper") else long
        elsewhere = OF_MODELS if row["unit"] == MODEL else ELSEWHERE
        longer = "" if shown else elsewhere.get(row["scale"], "")
        found = f" ({row['quantity']}: {number}{longer})" if row["verdict"] != UNTESTABLE else ""
        link = f"[why](../replication.md#{row['claim']})"
        yield f"{said}{printed} Here: **{row['verdict']}**{smaller}{found}, {link}."


def _minutes(figure: str, maker: Mapping[str, Job], results: Path) -> str:
    """The CPU time of all jobs that a figure needs, and of the one that draws it, as Snakemake measured it."""
    needed, waiting = {}, [figure]
    while waiting:
        path = waiting.pop()
        if path in maker and (job := maker[path]).output[0] not in needed:
            needed[job.output[0]] = job
            waiting += job.input
    seconds = [_seconds(results, job) for job in needed.values()]
    drawing = _seconds(results, maker[figure])
    if drawing is None or None in seconds:
        return "the time of some of its jobs is not recorded"
    whole = sum(second for second in seconds if second is not None)
    return f"{_told(whole)} for {len(needed)} jobs, {_told(drawing)} to draw" if len(needed) > 1 else _told(whole)


def _told(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 60 else f"{seconds / 60:.1f} minutes"


def _seconds(results: Path, job: Job) -> float | None:
    path = results / job.benchmark if job.benchmark else None
    if path is None or not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as opened:
        return sum(float(row["cpu_time"]) for row in csv.DictReader(opened, delimiter="\t"))


def tallied(text: str, tally: str, mark: str = FROM) -> str:
    """The text of a page with `tally` between a mark and the next TO. Raises ValueError where it has none."""
    before, _, rest = text.partition(mark)
    _, end, after = rest.partition(TO)
    if not end:
        raise ValueError(f"a page has no {mark} or no {TO}")
    return f"{before}{mark}\n\n{tally}\n{end}{after}"


def main(results: Path) -> None:
    """Write the pages and images of all papers; what an earlier run had in the folder of images is removed."""
    jobs, rules = workflow.jobs("all"), workflow.rules()
    scores = pd.read_csv(results / "results/tables/scorecard.csv")
    for paper in PAPERS:
        folder = ROOT / "docs/gallery"
        text = page(paper, results, jobs, rules, scores)
        for old in (folder / paper).glob("*.png"):
            old.unlink()
        for figure in figures(paper, jobs):
            shrink(_image(results, figure), folder / paper / f"{Path(figure).stem}.png")
        (folder / f"{paper}.md").write_text(text)
    for path in COUNTED:
        path.write_text(tallied(path.read_text(), pages.tally(scores)))
    for written, mark in ((pages.by_training(scores), TRAINING), (pages.changes(scores), CHANGES)):
        REPORT.write_text(tallied(REPORT.read_text(), written, mark))


if __name__ == "__main__":
    try:
        main(Path(*sys.argv[1:]).resolve())
    except InputError as error:
        sys.exit(f"error: {error}")
