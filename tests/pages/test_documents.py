"""What pages say of the workflow, of claims and of their verdicts is so. Where links lead is asked by `make site`."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from position_bias.verdicts.pages import short
from position_bias.verdicts.registry import OURS, every_addition, every_claim
from position_bias.verdicts.rule import ERRATUM, WORDS
from tools.workflow import rules

ROOT = Path(__file__).parents[2]
RULES = [rule for rule in rules().values() if rule.file.startswith("rules/")]
README = " ".join((ROOT / "README.md").read_text().split())
CHANGES = (ROOT / "docs/papers/changes.md").read_text()
PRETRAINED = (ROOT / "docs/pretrained.md").read_text()
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
PAGES = {path for of in ("*.md", "[!.]*/README.md", "docs/**/*.md") for path in ROOT.glob(of)}


@pytest.fixture(scope="module")
def claims():
    return every_claim(ROOT / "published/claims.csv") + every_addition(ROOT / "published/additions.csv")


@pytest.fixture(scope="module")
def kept():
    """The scorecard that is kept beside the pages."""
    return pd.read_csv(ROOT / "docs/scorecard.csv")


@pytest.fixture(scope="module")
def both(kept):
    """The same, and that of our additions."""
    return pd.concat([kept, pd.read_csv(ROOT / "docs/additions.csv")], ignore_index=True)


def spoken(text):
    """How many words of a page are read: without comments, markup, images and addresses."""
    for markup in (r"(?s)<!--.*?-->|<[^>]*>", r"!\[[^\]]*\]\([^)]*\)", r"\]\([^)]*\)"):
        text = re.sub(markup, " ", text)
    return len(re.findall(r"\S*\w\S*", text))


# What the repository holds


def test_every_figure_and_table_is_in_the_map():
    made = {
        path.replace("{figure}", figure)
        for rule in RULES
        for path in rule.output
        for figure in rule.constraints.get("figure", "").split("|")
    }
    shown = {path for path in made if re.fullmatch(r"figures/.*\.pdf|results/tables/.*\.md", path)}
    assert shown
    page = (ROOT / "docs/map.md").read_text()  # make check asks whether it is up to date
    assert [path for path in shown if f"`{path}`" not in page] == []


def test_every_caption_is_used_and_every_one_used_is_there():
    (description,) = re.findall(r'^report: "(.*)"$', (ROOT / "Snakefile").read_text(), re.MULTILINE)
    used = {ROOT / description, *(ROOT / caption for rule in RULES for caption in rule.captions)}
    assert used == set((ROOT / "report").glob("**/*.rst"))


def test_the_index_links_to_every_page():
    linked = {(ROOT / "docs" / path).resolve() for _, path in LINK.findall((ROOT / "docs/README.md").read_text())}
    assert PAGES - linked == {ROOT / "docs/README.md"}


@pytest.mark.parametrize("page", sorted(PAGES - {ROOT / "CHANGELOG.md"}), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_more_than_4000_words(page):
    assert spoken(page.read_text()) <= 4000


def test_the_readme_has_at_most_550_words():
    assert spoken((ROOT / "README.md").read_text()) <= 550


def test_the_readme_shows_a_table_of_the_page_on_documents():
    """Of each row the place, the probability and how many answers are right; of the page a test runs the steps."""
    page, shown = (
        [re.split(r" *\| *", row.strip("|\n ")) for row in table.splitlines()]
        for name in ("docs/documents.md", "README.md")
        for table in re.findall(r"^\| place \|.*\n(?:\|.*\n)+", (ROOT / name).read_text(), re.MULTILINE)
    )
    assert len(shown) == 9
    assert shown == [[cells[0], cells[1], cells[-1]] for cells in page]


def test_tests_that_pages_name_are_there():
    pages = "".join(page.read_text() for page in PAGES - {ROOT / "CHANGELOG.md"})
    named = set(re.findall(r"\btests/(?:\w+/)*\w+\.py", pages))
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_citation_names_the_four_papers_of_the_readme():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    numbers = {identifier["value"] for paper in cited for identifier in paper["identifiers"]}
    assert numbers == set(re.findall(r"arXiv:\d+\.\d+", README))
    assert [paper["title"] for paper in cited if paper["title"] not in README] == []


# Claims and verdicts


def test_no_count_of_claims_has_additions_among_them(kept, both):
    assert OURS not in set(kept["whose"])
    assert set(both["whose"][len(kept) :]) == {OURS}


def test_the_scorecard_that_is_kept_is_of_the_registry(claims, both):
    columns = ["paper", "item", "title", "statement", "form", "unit", "kind"]
    columns += ["whose", "needs", "doubted", "table", "shown"]
    stated = [(claim.id, *(getattr(claim, column) for column in columns)) for claim in claims]
    assert list(both[["claim", *columns]].itertuples(index=False, name=None)) == stated
    # all scales but the first are those of evidence/
    assert {"default"} <= set(both["scale"]) <= {"default", "longer", "pretrained", "paper"}


def test_what_is_open_says_what_would_decide_it(both):
    assert both["would decide"].notna().tolist() == both["verdict"].isin(["undecided", "not testable here"]).tolist()


def test_the_page_on_running_shows_lines_that_make_all_prints(kept):
    (excerpt,) = re.findall(r"```\n( +hold .*?)```", (ROOT / "docs/running.md").read_text(), re.DOTALL)
    assert set(excerpt.splitlines()) <= set(short(kept).splitlines())


def test_every_finding_on_pretrained_decoders_tells_the_verdicts_kept(both):
    verdicts = both.set_index("claim")["verdict"].to_dict()
    words = {verdict.rstrip("s"): verdict for verdict in [*WORDS, ERRATUM]}
    _, *findings = re.split(r"\n(?=(?:<a id=.*\n)+## )", PRETRAINED)
    assert len(findings) > 2
    for finding in findings:
        claims, text = finding.split("\n## ")[:2]
        told = {words.get(word.lower().rstrip("s.")) for word in re.findall(r"\*\*([^*]+)\*\*", text.split("\n## ")[0])}
        assert told - {None} == {verdicts[claim] for claim in re.findall(r'"([\w-]+)"', claims)}, claims


def test_the_page_of_changes_tells_what_became_of_verdicts(both):
    (table,) = re.findall(r"\n\| claim \| before \| now \|.*\n.*\n((?:\|.*\n)+)", CHANGES)
    (left_open,) = re.findall(r"undecided now, are:\n\n((?:- .*\n)+)", CHANGES)
    changed = [(row.split(" | ")[0], row.split(" | ")[2]) for row in table.splitlines()]
    told = {
        address.partition("#")[2]: (title, now)
        for claim, now in [*changed, (left_open, "undecided")]
        for title, address in LINK.findall(claim)
    }
    cards = both.set_index("claim")
    assert told == {claim: (cards["title"].get(claim), cards["verdict"].get(claim)) for claim in told}


def test_rows_that_a_claim_says_are_its_predictions(claims):
    judged = pd.read_csv(ROOT / "published/predictions.csv").dropna(subset="claim").groupby("claim")
    told = {claim.id: claim.rows for claim in claims if claim.paper == "postnorm" or claim.id == "emergence-encodings"}
    assert told == {claim: "; ".join(map(in_words, judged.get_group(claim).itertuples())) for claim in told}


def in_words(row):
    """A prediction as the column `rows` of published/claims.csv has it."""
    networks = " - ".join(name for name in (row.network, row.other) if isinstance(name, str))
    margin = f", margin {row.margin:g}" if row.margin else ""
    return f"{row.statistic} of {networks} {row.relation} {row.bound:g}{margin}"
