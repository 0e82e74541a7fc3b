"""The registry of claims against its table in published/, the rules of the workflow and what papers print."""

import re
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from position_bias.claims import registry
from position_bias.claims.verdict import COLUMNS

ROOT = Path(__file__).parents[2]
PAPERS = {"structural", "emergence", "layernorm", "postnorm"}
KINDS = {"theorem", "proposition", "figure", "table", "text", "ours"}
NAMES = [claim.name for claim in registry.CLAIMS]
every_claim = pytest.mark.parametrize("claim", registry.CLAIMS, ids=NAMES)


def published(file):
    return pd.read_csv(ROOT / "published" / file, dtype=str, keep_default_na=False)


def outputs():
    """Patterns of what rules write, wildcards matching one part of a path."""
    text = "".join(path.read_text() for path in sorted((ROOT / "rules").glob("*.smk")))
    paths = set(re.findall(r'"((?:figures|results/tables)/[^"]+\.(?:pdf|md|csv))"', text))
    return [re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)) for path in paths]


OUTPUTS = outputs()


def is_output(path):
    return any(re.fullmatch(pattern, path) for pattern in OUTPUTS)


def figures_of_emergence():
    """Names that the wildcard `figure` of its rules may have, and of figures with a rule of their own."""
    return set(re.findall(r'"(fig\w+)"', (ROOT / "rules/emergence.smk").read_text())) | {"fig1", "fig2"}


def test_the_published_table_and_the_registry_are_the_same_claims():
    columns = ["claim", "paper", "item", "statement"]
    stated = published("claims.csv")
    assert list(stated.columns) == ["claim", "paper", "item", "place", "statement", "kind"]
    registered = [(claim.name, claim.paper, claim.item, claim.statement) for claim in registry.CLAIMS]
    assert sorted(stated[columns].itertuples(index=False, name=None)) == sorted(registered)
    assert (stated["place"] != "").all()


def test_a_claim_is_of_a_known_kind_and_ours_says_so():
    stated = published("claims.csv")
    assert set(stated["kind"]) <= KINDS
    assert ((stated["kind"] == "ours") == stated["statement"].str.startswith("ours: ")).all()


def test_names_are_unique_and_fit_a_file_name():
    assert len(NAMES) == len(set(NAMES))
    assert [name for name in NAMES if not re.fullmatch(r"[a-z0-9-]+", name)] == []


def test_claims_are_of_the_four_papers():
    assert {claim.paper for claim in registry.CLAIMS} == PAPERS


@every_claim
def test_a_claim_fits_its_line(claim):
    assert 0 < len(claim.statement) <= 78
    assert 0 < len(claim.item) <= 16
    assert claim.statement.strip(" .") == claim.statement


@every_claim
def test_rows_are_chosen_by_patterns_over_columns_that_say_what_a_row_is_about(claim):
    assert claim.rows
    assert set(claim.rows) <= {"item", "quantity", "predicted", "source"} <= set(COLUMNS)
    for pattern in claim.rows.values():
        re.compile(pattern)


@every_claim
def test_what_a_claim_shows_and_is_judged_on_is_made_by_a_rule(claim):
    assert is_output(claim.shown)
    assert is_output(f"results/tables/{claim.table}.csv")
    assert claim.table.split("/")[0] == claim.paper
    figure = re.fullmatch(r"figures/emergence/(fig\w+)\.pdf", claim.shown)
    assert figure is None or figure[1] in figures_of_emergence()


def test_outputs_are_read_from_the_rules():
    assert len(OUTPUTS) > 50
    assert is_output("figures/structural/fig1.pdf")
    assert not is_output("figures/structural/fig9.pdf")


@every_claim
def test_a_printed_value_is_one_of_the_published_ones(claim):
    values = published("values.csv").set_index("id")
    assert claim.published == "" or values.loc[claim.published, "paper"] == claim.paper


def test_published_values_are_numbers_known_to_half_of_their_last_digit():
    values = published("values.csv")
    assert list(values.columns) == ["id", "paper", "item", "place", "quantity", "value", "tolerance", "source"]
    assert values["id"].is_unique
    assert set(values["paper"]) <= PAPERS
    assert (values[["item", "place", "quantity", "source"]] != "").all(axis=None)
    for value, tolerance in values[["value", "tolerance"]].itertuples(index=False):
        last_digit = Decimal(1).scaleb(int(Decimal(value).as_tuple().exponent))
        assert Decimal(tolerance) == last_digit / 2, f"{value} +- {tolerance}"
