"""The pages of the papers have every claim with the verdict and the numbers that are kept, and every figure."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from position_bias.verdicts import rule
from tests.refusals import refused
from tools import papers
from tools.workflow import jobs

ROOT = Path(__file__).parents[2]
SCORES, ADDITIONS, COMPARED = (pd.read_csv(ROOT / f"docs/{name}.csv") for name in papers.VERDICT_TABLES)
NAMES = ("structural", "emergence", "layernorm", "postnorm")
FRONT = (ROOT / "README.md").read_text()
TEXTS = {path.stem: path.read_text() for path in (ROOT / "docs/papers").glob("*.md") if path.stem != "changes"}
ROW = re.compile(r'^\| <a id="([\w-]+)"></a>(.*?) \| (.*?) \| (.*?) \| \*\*(.+?)\*\*(.*?) \| (.*?) \|$', re.MULTILINE)
WITH_INTERVAL = re.compile(r"(-?[\d.,e-]+) \[(-?[\d.e-]+), (-?[\d.e-]+)\]")
SCALES = {  # of verdicts, in words; the default run is told by how long it trains
    **{"longer training": "longer", "pretrained models": "pretrained", "paper's scale": "paper"},
    **{"300 steps": "default", "1,000-2,500 iterations": "default"},
    **{"700 iterations": "default", "150-4,000 iterations": "default"},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_every_claim_of_its_paper_once_as_kept(name):
    kept = SCORES[SCORES["paper"] == name].set_index("claim")
    rows = ROW.findall(TEXTS[name])
    assert sorted(claim for claim, *_ in rows) == sorted(kept.index)
    for claim, said, _, _, verdict, more, _ in rows:
        row = kept.loc[claim]
        assert said.startswith(row["statement"])
        assert verdict == row["verdict"]
        scales = [SCALES[part] for part in more.split("<br>") if part in SCALES]
        spoken_of = row["needs"] != "nothing" and verdict != "not testable here"
        assert scales == ([row["scale"]] if spoken_of else [])


def test_the_page_of_additions_answers_every_question():
    rows = ROW.findall(TEXTS["additions"])
    told = [(claim, question, statement, verdict) for claim, question, statement, _, verdict, *_ in rows]
    columns = ["claim", "question", "statement", "verdict"]
    assert told == list(ADDITIONS[columns].itertuples(index=False, name=None))


@pytest.mark.parametrize("name", TEXTS)
def test_numbers_with_intervals_are_those_of_kept_comparisons(name):
    for claim, _, _, here, *_ in ROW.findall(TEXTS[name]):
        numbers = COMPARED.loc[COMPARED["claim"] == claim, ["measured", "low", "high"]].to_numpy()
        with np.errstate(over="ignore"):
            known = np.concatenate([numbers, -numbers[:, [0, 2, 1]], np.exp(numbers)])
        for told in WITH_INTERVAL.findall(here):
            value = np.array([float(number.replace(",", "")) for number in told])
            assert np.isclose(known, value, rtol=0.006, atol=5e-5).all(axis=1).any(), (claim, told)


def test_the_comparison_that_the_scorecard_shows_is_kept():
    columns = ["claim", "quantity", "measured", "low", "high", "scale"]
    shown = SCORES.loc[SCORES["measured"].notna(), columns].merge(
        COMPARED[columns], on=columns, how="left", indicator=True
    )
    assert shown.loc[shown["_merge"] != "both", "claim"].tolist() == []


@pytest.mark.parametrize("name", TEXTS)
def test_verdicts_in_a_text_are_not_written_by_hand(name):
    by_hand = re.findall(r"\*\*([^*]+)\*\*", (papers.TEXTS / f"{name}.md").read_text())
    assert not {word.lower().rstrip(".") for word in by_hand} & {*rule.MEANING}


NUMBERED = [("structural", {"Figure": 5, "Table": 6}), ("emergence", {"Figure": 13, "Table": 1})]


@pytest.mark.parametrize(("name", "numbered"), NUMBERED)
def test_the_first_table_leads_to_every_figure_and_table(name, numbered):
    head, _, _ = TEXTS[name].partition("\n\nWords:")
    for kind, count in numbered.items():
        for number in range(1, count + 1):
            (anchor,) = re.findall(rf"^\| \[{kind} {number}\]\(#(.+?)\)", head, re.MULTILINE)
            assert f'<a id="{anchor}"></a>' in TEXTS[name]


@pytest.mark.parametrize("name", [name for name, _ in NUMBERED])
def test_who_looks_for_a_figure_is_led_to_its_claims(name):
    led = dict(re.findall(r"^\| \[((?:Figure|Table) \d+)\]\(#(.+?)\)", TEXTS[name], re.MULTILINE))
    sections = [(text.partition("## ")[0], text) for text in papers.SECTION.split(TEXTS[name])]
    for row in SCORES[SCORES["paper"] == name].itertuples():
        if found := re.match(r"(Figure|Table)s? (\d+)(?:\w?, (\d+))?", row.item):
            kind, *numbers = found.groups()
            to = {led[f"{kind} {number}"] for number in numbers if number}
            there = [text for anchors, text in sections if any(f'"{anchor}"' in anchors for anchor in to)]
            assert any(f'<a id="{row.claim}"></a>' in text for text in there), (row.claim, row.item)


def test_figure_1_of_structural_stands_on_its_first_screen():
    lines = TEXTS["structural"].splitlines()
    (place,) = [number for number, line in enumerate(lines) if "half/big_models.png" in line]
    assert place < 12
    kept = SCORES.set_index("claim")["verdict"]
    told = re.findall(r"\*\*\((.)\)\*\*.*?: \*\*(.+?)\*\*", lines[place])
    assert told == [(part, kept[f"structural-figure-1-{part}"]) for part in "abcd"]


def test_every_figure_of_the_papers_is_on_a_page_as_an_image():
    made = {path for job in jobs("all") for path in job.output if re.fullmatch(r"figures/\w+/\w+\.pdf", path)}
    built = {path for text in TEXTS.values() for path in re.findall(r": `(figures/\S+)`\*$", text, re.MULTILINE)}
    assert built == made
    shown = {path for text in TEXTS.values() for path in re.findall(r"\]\(\.\./images/(\w+/\w+)\.png\)", text)}
    assert {f"figures/{image}.pdf" for image in shown} == made
    kept = {path.relative_to(papers.IMAGES) for path in papers.IMAGES.glob("*/*.png")}
    assert {path.with_suffix("").as_posix() for path in kept} == shown
    assert max((papers.IMAGES / path).stat().st_size for path in kept) < 250_000
    assert max(path.stat().st_size for path in papers.IMAGES.glob("*/small/*.png")) < 20_000


def test_the_list_of_verdicts_has_every_claim_once():
    for name in NAMES:
        _, _, signed = TEXTS[name].partition("## All verdicts in one list")
        listed = re.findall(r"\]\(#([\w-]+)\)", signed)
        claims = [claim for claim, *_ in ROW.findall(TEXTS[name])]
        assert sorted(claim for claim in listed if claim in claims) == sorted(claims)


def test_the_page_of_counts_counts_the_scorecard():
    theirs = SCORES[~SCORES["doubted"]]
    head, *rows = re.findall(r"^\| (paper \| .*|\[`.*) \|$", TEXTS["README"], re.MULTILINE)
    _, _, *words = head.split(" | ")
    for row in rows:
        name, claims, *counts = row.split("|")
        of_paper = theirs[theirs["paper"] == re.search(r"`(\w+)`", name)[1]]["verdict"]
        assert [int(claims), *(int(count.strip() or 0) for count in counts)] == [
            len(of_paper),
            *((of_paper == word).sum() for word in words),
        ]
    assert len(rows) == 4


def test_the_page_of_counts_names_claims_that_no_figure_shows():
    registry = pd.read_csv(ROOT / "published/claims.csv")
    alone = registry[~registry["shown"].str.contains("figures/")]
    told = TEXTS["README"].partition("## By a table alone")[2].partition("\n## ")[0]
    assert int(re.search(r"(\d+) claims", told)[1]) == len(alone)
    links = alone["paper"] + ".md#" + alone["id"]
    assert re.findall(r"\]\(([^)]+)\)", told) == links.tolist()


def test_the_readme_names_what_fails_of_papers_known_from_summaries():
    counted = SCORES[SCORES["paper"].isin(["layernorm", "postnorm"]) & ~SCORES["doubted"]]
    named = re.findall(r"\(docs/papers/(?:layernorm|postnorm)\.md#([\w-]+)\)", FRONT)
    assert named == counted.loc[counted["verdict"] == "fails", "claim"].tolist()


def test_the_readme_says_what_came_of_how_many_claims():
    theirs = SCORES[~SCORES["doubted"]]
    rows = re.findall(r"^\| \[`(\w+)`\]\(docs/papers/\1.md\) \| [^|]+ \|([\d |]+)\|$", FRONT, re.MULTILINE)
    for name, counts in rows:
        of_paper = theirs[theirs["paper"] == name]
        words, own = of_paper["verdict"], of_paper["own scale"]
        reproduced, undecided, untested = (words == "holds") & own, words == "undecided", words == "not testable here"
        errata = (words == "erratum") | (words == "fails") & of_paper["item"].str.contains("released")
        held = of_paper["holds in"].str.extract(r"(\d+) of (\d+)").astype(float)
        failed = words.isin(["fails", "no effect"]) & ~errata & ~(held[0] > held[1] / 2)
        other = [failed, errata, undecided, untested]
        in_part = ~reproduced & ~np.any(other, axis=0)
        expected = [len(of_paper), *(found.sum() for found in (reproduced, in_part, *other))]
        assert [int(count) for count in counts.split("|")] == expected
    assert [name for name, _ in rows] == [*NAMES]


# The tool


def page_of_one(**changed):
    """A page with the first claim of structural on Figure 1, with these values in its row of the scorecard."""
    scores = SCORES[SCORES["claim"] == "structural-figure-1-b"].assign(**changed)
    return papers.Page("structural", scores, COMPARED)


def test_a_number_is_that_of_the_comparison_that_fits():
    page = page_of_one()
    measured = COMPARED[(COMPARED["claim"] == "structural-figure-1-b") & (COMPARED["scale"] == "paper")]
    first = measured[measured["quantity"].str.contains("log of first")]["measured"]
    asked = page.number("structural-figure-1-b", "exp span :: log of first")
    assert asked == f"{np.exp(first.min()):.3g} to {np.exp(first.max()):.3g}"
    of_one = first[measured["quantity"].str.contains("mpt-7b")].item()
    assert page.number("structural-figure-1-b", "minus :: log of first & mpt-7b") == f"{-of_one:.3g}"
    for asked in ("log of first", "nothing of this kind"):
        with refused("comparisons of structural-figure-1-b fit"):
            page.number("structural-figure-1-b", asked)


def test_n_is_that_of_the_comparisons_whose_numbers_are_shown():
    kept = COMPARED[(COMPARED["claim"] == "structural-figure-1-d") & COMPARED["decides"]]
    of_one = kept[kept["quantity"].str.contains("first / middle.*stories15m")]["n"].item()
    row = SCORES[SCORES["claim"] == "structural-figure-1-d"].squeeze()
    assert of_one != row["n"]  # of the comparison that decides
    page = papers.Page("structural", SCORES, COMPARED)
    assert f"<br>{of_one} documents<br>" in page.claim("structural-figure-1-d", here="{first & stories15m}")
    assert f"<br>{row['n']} documents<br>" in page.claim("structural-figure-1-d")
    without_numbers = page.claim("structural-figure-1-d", here="in all five")
    assert f"<br>{kept['n'].min()} to {kept['n'].max()} documents<br>" in without_numbers


def test_a_range_over_layers_has_no_sample():
    page = papers.Page("structural", SCORES, COMPARED)
    told = page.claim("structural-table-5", here="{span :: within the diagonal}")
    assert "<br>ranges over 12 layers |" in told


def test_comparisons_that_do_not_support_a_claim_are_told_apart():
    rows = [
        {"relation": ">", "bound": 0, "margin": 0.01, "low": low, "high": high, "seen_before": seen, "verdict": word}
        for low, high, seen, word in [
            (0.1, 0.2, 0, "holds"),
            (0.1, 0.2, 5, "undecided"),
            (-0.1, 0.2, 5, "undecided"),
            (-0.1, 0.2, 0, "undecided"),
            (-0.2, -0.1, 0, "fails"),
        ]
    ]
    counts = {"rows: holds": 1, "rows: fails": 1, "rows: no effect": 0, "rows: not testable here": 3}
    row = {"decides": "all", "holds in": "1 of 8 comparisons", "unit": "seed", "form": "all", **counts}
    assert list(papers.degree(row, rows)) == ["1 as claimed, 1 seen before, 1 contrary, 2 open, 3 missing"]
    of_models = row | {"unit": "model", "form": "can", "holds in": "1 of 2 models", "rows: not testable here": 0}
    assert list(papers.degree(of_models, rows[:1] + rows[4:])) == [
        "1 of 2 models: 1 as claimed, 1 contrary; one is enough"
    ]


@pytest.mark.parametrize(
    ("changed", "group"),
    [
        ({}, papers.REPRODUCED),
        ({"own scale": False}, papers.IN_PART),
        ({"kind": "theory"}, papers.PROVED),
        ({"item": "Table 2, drawn"}, papers.OF_ITS_OWN),
        ({"verdict": "fails", "holds in": "4 of 5 models"}, papers.IN_PART),
        ({"verdict": "fails", "holds in": "2 of 4 models"}, papers.NOT),
        ({"verdict": "fails", "holds in": "4 of 5 models", "item": "Section 6.1, released code"}, papers.ERRATA),
        ({"verdict": "fails", "doubted": True}, papers.NOT_COUNTED),
    ],
)
def test_a_claim_is_signed_in_the_group_of_what_came_of_it(changed, group):
    row = {"verdict": "holds", "own scale": True, "kind": "network", "item": "Figure 1", "doubted": False}
    assert papers.signed_group(row | {"holds in": "5 of 5 models"} | changed) == group


def test_what_no_claim_judges_is_listed_where_a_text_names_it():
    (line,) = page_of_one().signed("not run", "", "Appendix B").splitlines()[-1:]
    assert line == f"- **{papers.WITHOUT_CLAIM}**: Appendix B."
    assert papers.WITHOUT_CLAIM not in page_of_one().signed("not run")


def test_a_figure_counts_the_claims_on_it_alone():
    found = re.search(r"^\| \[Figure 10\]\(#figure-9\).* \| (.*) \|$", TEXTS["emergence"], re.MULTILINE)
    on_it = SCORES[SCORES["item"] == "Figure 10"]["verdict"]
    assert found[1] == ", ".join(f"{word} {count}" for word, count in on_it.value_counts().items())
    assert papers.is_on("Figures 2, 4", "Figure 4")
    assert not papers.is_on("Figures 2, 4", "Table 4")
    assert not papers.is_on("Figure 13a", "Figure 3")


def test_claims_that_a_text_does_not_name_stand_at_its_end():
    written = page_of_one(verdict="mostly holds").render('<a id="x"></a>\n## X\n\n@x:@\n\n{{ further() }}')
    assert "no claim" in written
    assert "## Further claims" in written
    assert "| **mostly holds**<br>paper's scale" in written
    told = page_of_one().render('<a id="x"></a>\n## X\n\n@x:@\n{{ claim("structural-figure-1-b") }}\n{{ further() }}')
    assert "Further" not in told
    assert "\nholds 1\n" in told


def test_numbers_are_short():
    said = {0.0726: ".0726", -0.5: "-.5", 13.64: "13.6", 1234.5: "1,234", 5.55e-16: "6e-16"}
    assert {value: papers.short(value) for value in said} == said


def test_an_image_shrinks_to_the_same_bytes_and_keeps_colours(tmp_path):
    page = np.full((400, 1360, 3), 255, np.uint8)
    page[100:104], page[200:204] = (1, 115, 178), (2, 158, 115)  # two thin lines, blue and green
    page[300:304] = np.linspace(0, 255, 1360)[:, None]  # and many shades of grey
    Image.fromarray(page).save(tmp_path / "large.png")
    for name in ("one.png", "two.png"):
        papers.shrink(tmp_path / "large.png", tmp_path / name, (760, 2000))
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    with Image.open(tmp_path / "one.png") as small:
        drawn = np.asarray(small.convert("RGB"), int)
    size = 760, round(400 * 760 / 1360)
    np.testing.assert_allclose(drawn, Image.fromarray(page).resize(size, Image.Resampling.LANCZOS), atol=25)
    papers.shrink(tmp_path / "large.png", tmp_path / "low.png", (760, 40))
    with Image.open(tmp_path / "low.png") as low:
        assert low.size == (136, 40)


@pytest.mark.all("every table and image of a run is written")
def test_what_pages_need_is_kept_of_a_finished_run(tmp_path):
    docs, results = tmp_path / "docs", tmp_path / "run"
    old = docs / "images/structural/old.png"
    old.parent.mkdir(parents=True)
    old.touch()
    made = [path for job in jobs("all") for path in job.output if re.fullmatch(r"figures/\w+/\w+\.png", path)]
    for path in made:
        (results / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (3200, 80), "white").save(results / path)
    with refused("scorecard.csv is not there", "snakemake all"):
        papers.keep(results, docs)
    assert old.exists()
    (results / "results/tables/structural").mkdir(parents=True)
    (results / "results/tables/emergence").mkdir()
    for name in [*papers.VERDICT_TABLES, *papers.TABLES]:
        (results / f"results/tables/{name}.csv").write_text(name)
    papers.keep(results, docs)
    assert not old.exists()
    assert (docs / "comparisons.csv").read_text() == "comparisons"
    assert (docs / "tables/table2.csv").read_text() == "structural/table2"
    for path in made:
        for folder, size in (("", (1600, 40)), ("small", (160, 4))):
            paper, name = Path(path).parts[1:]
            with Image.open(docs / "images" / paper / folder / name) as image:
                assert image.size == size
