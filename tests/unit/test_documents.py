"""What pages say of the workflow, of claims and of their verdicts is so; where links lead, make site asks."""

import re
from pathlib import Path

import pandas as pd
import pytest

from position_bias.verdicts.pages import by_training, changes, short, tally
from position_bias.verdicts.registry import every_claim
from position_bias.verdicts.rule import ERRATUM, WORDS
from tools import gallery
from tools.workflow import rules

ROOT = Path(__file__).parents[2]
RULES = [rule for rule in rules().values() if rule.file.startswith("rules/")]
MAP = (ROOT / "docs/map.md").read_text()  # make check asks whether it is written from the workflow
NAMES = {rule.name for rule in RULES}
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def rows(page, header):
    """Cells of the tables under this header row, a list a row."""
    tables = (ROOT / page).read_text().split(f"\n{header}\n")[1:]
    found = [row for table in tables for row in re.match(r"(?:\|.*\n)*", table)[0].splitlines()[1:]]
    assert found, f"{page} has no table under {header}"
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in found]


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


def test_every_figure_and_table_is_in_the_map_with_its_rule_and_code():
    written = {
        path.replace("{figure}", figure)
        for rule in RULES
        for path in rule.output
        for figure in rule.constraints.get("figure", "").split("|")
        if path.startswith(("figures/", "results/tables/")) and path.endswith((".pdf", ".md"))
    }
    cells = [line.strip("|").split(" | ") for line in MAP.splitlines() if line.startswith("| ") and "`" in line]
    shown = {target for row in cells for target in quoted(row[1])}
    assert written - shown == set()
    for row in cells:
        assert set(quoted(row[2])) <= NAMES
        assert LINK.search(row[3]) or "licences" in row[1]


@pytest.fixture(scope="module")
def claims():
    return every_claim(ROOT / "published/claims.csv")


@pytest.fixture(scope="module")
def kept():
    """The scorecard that is kept beside the pages."""
    return pd.read_csv(ROOT / "docs/scorecard.csv")


def test_the_scorecard_that_is_kept_is_of_the_claims_of_the_registry(claims, kept):
    columns = ["paper", "item", "title", "statement", "form", "unit", "kind"]
    columns += ["whose", "needs", "doubted", "table", "shown"]
    stated = [(claim.id, *(getattr(claim, column) for column in columns)) for claim in claims]
    assert list(kept[["claim", *columns]].itertuples(index=False, name=None)) == stated
    # all scales but the first are those of evidence/
    assert {"laptop"} <= set(kept["scale"]) <= {"laptop", "longer", "pretrained", "paper"}


def test_the_page_of_the_scorecard_is_written_from_its_table(kept):
    written = (ROOT / "docs/scorecard.md").read_text()
    assert written == gallery.scorecard(kept)
    assert re.findall(r'<a id="(.*)"></a>', written) == kept["claim"].tolist()


def test_what_is_open_says_what_would_decide_it(kept):
    assert kept["would decide"].notna().tolist() == kept["verdict"].isin(["undecided", "not testable here"]).tolist()


def test_the_page_on_running_and_the_report_have_the_counts_of_the_scorecard_that_is_kept(kept):
    for page in gallery.COUNTED:
        assert gallery.tallied(page.read_text(), tally(kept)) == page.read_text()
        assert tally(kept) in page.read_text()
    report = gallery.REPORT.read_text()
    for written, mark in ((by_training(kept), gallery.TRAINING), (changes(kept), gallery.CHANGES)):
        assert gallery.tallied(report, written, mark) == report
        assert written in report


def test_the_page_on_running_shows_lines_that_make_all_prints(kept):
    (excerpt,) = re.findall(r"```\n( +hold .*?)```", (ROOT / "docs/running.md").read_text(), re.DOTALL)
    assert len(excerpt.splitlines()) == 3
    assert set(excerpt.splitlines()) <= set(short(kept).splitlines())


def test_the_report_has_an_anchor_for_every_claim_and_for_no_other(claims):
    there = re.findall(r'<a id="([^"]+)"></a>', (ROOT / "docs/replication.md").read_text())
    papers = tuple(f"{paper}-" for paper in {claim.paper for claim in claims})
    assert {claim.id for claim in claims} - set(there) == set()
    assert {anchor for anchor in there if anchor.startswith(papers)} - {claim.id for claim in claims} == set()
    assert len(there) == len(set(there))


def test_every_finding_of_the_report_tells_the_verdicts_that_are_kept_and_no_others(kept):
    verdicts = kept.set_index("claim")["verdict"].to_dict()
    words = {verdict.rstrip("s"): verdict for verdict in [*WORDS, ERRATUM]}
    _, *findings = re.split(r"\n(?=(?:<a id=.*\n)+### )", (ROOT / "docs/replication.md").read_text())
    for finding in findings:
        claims, text = finding.split("\n### ")[:2]
        told = {words.get(word.lower().rstrip("s.")) for word in re.findall(r"\*\*([^*]+)\*\*", text.split("\n## ")[0])}
        assert told - {None} == {verdicts[claim] for claim in re.findall(r'"([\w-]+)"', claims)}, claims


def test_the_report_tells_of_every_verdict_that_changed_the_one_that_is_kept(kept):
    told = {
        anchor.lstrip("#"): (title, now)
        for claim, _, now, _ in rows("docs/replication.md", "| claim | before | now | cause |")
        for title, anchor in LINK.findall(claim)
    }
    left_open = re.search(r"undecided now, are:\n\n((?:- .*\n)+)", (ROOT / "docs/replication.md").read_text())[1]
    told |= {anchor.lstrip("#"): (title, "undecided") for title, anchor in LINK.findall(left_open)}
    cards = kept.set_index("claim")
    assert told == {claim: (cards["title"].get(claim), cards["verdict"].get(claim)) for claim in told}


def test_the_words_of_rows_of_postnorm_are_their_predictions(claims):
    judged = pd.read_csv(ROOT / "published/predictions.csv").dropna(subset="claim").groupby("claim")
    told = {claim.id: claim.rows for claim in claims if claim.paper == "postnorm" or claim.id == "emergence-encodings"}
    assert told == {claim: "; ".join(map(in_words, judged.get_group(claim).itertuples())) for claim in told}


def in_words(row):
    """A prediction as the column `rows` of published/claims.csv has it."""
    networks = " - ".join(name for name in (row.network, row.other) if isinstance(name, str))
    margin = f", margin {row.margin:g}" if row.margin else ""
    return f"{row.statistic} of {networks} {row.relation} {row.bound:g}{margin}"


def test_the_index_of_the_pages_links_to_every_page():
    pages = {path for of in ("*.md", "[!.]*/README.md", "docs/**/*.md") for path in ROOT.glob(of)}
    linked = {(ROOT / "docs" / path).resolve() for _, path in LINK.findall((ROOT / "docs/README.md").read_text())}
    assert pages - linked == {ROOT / "docs/README.md"}


def test_every_caption_is_used_and_every_caption_used_is_there():
    (description,) = re.findall(r'^report: "(.*)"$', (ROOT / "Snakefile").read_text(), re.MULTILINE)
    used = {ROOT / description, *(ROOT / caption for rule in RULES for caption in rule.captions)}
    assert used == set((ROOT / "report").glob("**/*.rst"))


def modules_of_a_row(cell):
    """Names of the modules in a row of the layers: `folder/` is all of a folder, `folder/`: a list of its own."""
    names, folder = [], ""
    for name, colon in re.findall(r"`([^`]+)`(:?)", cell):
        if colon:
            folder = name
        elif name.endswith("/"):
            within = sorted((ROOT / "position_bias" / name).glob("*.py"))
            assert within, f"position_bias/{name} is no folder of modules"
            names += [f"{name}{path.name}" for path in within if path.name != "__init__.py"]
        else:
            names.append(folder + name)
    return names


def test_the_layers_name_every_module_of_the_library_once():
    named = [name for row in rows("docs/architecture.md", "| layer | modules |") for name in modules_of_a_row(row[1])]
    package = ROOT / "position_bias"
    there = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if path.name != "__init__.py"}
    assert {"named, not there": set(named) - there, "there, not named": there - set(named)} == {
        "named, not there": set(),
        "there, not named": set(),
    }
    assert len(named) == len(set(named))
