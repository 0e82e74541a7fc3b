"""What the spans of a prompt weigh: models whose answer is known, plain passes, and the command."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM

from position_card import spans
from position_card.card import command, span_measuring
from tests.position_card.card.conftest import llama, numbered
from tests.refusals import refused

PIECES = ("A list is\n\n", "one of two.\n\n", "This is\n\n", "What is it")
TYPED = ["--spans", "--text", "texts.jsonl", "--threads", "1"]


@pytest.fixture
def asked(here):
    (here / "asked.txt").write_text("".join(PIECES) + "\n")
    return here / "position-card/my-model/spans/asked"


def run(*typed):
    return command.main(["./my-model", *TYPED, *typed])


def test_a_span_has_the_share_that_autograd_gives_its_tokens(asked, own_tokenizer, capsys):
    assert run("--prompt", "asked.txt", "--quiet", "--json") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    (found,) = json.loads(printed.out)
    assert found == json.loads((asked / "spans.json").read_text())
    model = AutoModelForCausalLM.from_pretrained("./my-model")
    tokens = torch.tensor([own_tokenizer.encode("".join(PIECES), add_special_tokens=False).ids])
    lengths = [len(own_tokenizer.encode(piece, add_special_tokens=False).ids) for piece in PIECES]
    assert [span["tokens"] for span in found["spans"]] == lengths
    embeddings = model.get_input_embeddings()(tokens).detach().requires_grad_()
    distribution = model(inputs_embeds=embeddings).logits[0, -1].softmax(-1)
    distribution.max().backward()
    most = distribution.detach().max()
    shares = embeddings.grad[0].norm(dim=-1)
    shares = (shares / shares.sum()).split(lengths)
    expected = [float(share.sum()) for share in shares]
    assert [span["gradient"]["as given"] for span in found["spans"]] == pytest.approx(expected, rel=1e-3)
    assert found["next"]["probability"] == pytest.approx(float(most), rel=1e-4)
    page, heaviest = (asked / "spans.md").read_text(), int(np.argmax(expected[:-1])) + 1
    assert f"**By gradients, span {heaviest} (" in page
    table = pd.read_csv(asked / "spans.csv")
    assert set(table["place"]) == {"as given", "first", "middle", "last"}
    assert len(table) == 4 + 3 * 3
    places = table[table["place"] != "as given"]
    lines = [line for line in page.splitlines() if "of the variance comes" in line]  # by gradients, and by replacement
    for measure, line in zip(("gradient", "replacement"), lines, strict=True):
        heaviest = places.loc[places.groupby("place")[measure].idxmax(), "span"]
        assert ("weighs most at every place" in line) == (heaviest.nunique() == 1)


def test_a_model_in_memory_gives_the_numbers_of_its_files(asked, own_tokenizer, prose):
    assert run("--prompt", "asked.txt", "--quiet") == 0
    model = llama().train()
    implementation = model.config._attn_implementation
    given = spans(model, own_tokenizer, PIECES, texts=prose, threads=1, name="my-model", prompt_name="asked.txt")
    pd.testing.assert_frame_equal(given.table, pd.read_csv(asked / "spans.csv"), check_dtype=False, rtol=1e-4)
    assert all(module.training for module in model.modules())
    assert all(weight.requires_grad and weight.grad is None for weight in model.parameters())
    assert model.config._attn_implementation == implementation
    whole = spans(model, own_tokenizer, "".join(PIECES), texts=prose, threads=1)
    pd.testing.assert_frame_equal(whole.table, given.table)


def blind(*, deaf=False):
    """One layer that attends to all tokens alike, wherever they stand; a deaf one adds nothing of what it reads."""
    model = llama()
    model.model.layers = model.model.layers[:1]
    (layer,) = model.model.layers
    layer.self_attn.q_proj.weight.data.zero_()
    if deaf:
        layer.self_attn.o_proj.weight.data.zero_()
    return model


def test_where_places_do_not_matter_all_comes_of_the_span(own_tokenizer, prose):
    found = spans(blind(), own_tokenizer, PIECES, texts=prose)
    for measure in ("gradient", "replacement"):
        assert found.explained[measure]["span"] == pytest.approx(1, abs=1e-3)
    assert found.page.count("which span it is matters more than where it stands.**") == 2


def test_where_the_last_token_alone_counts_spans_weigh_nothing(own_tokenizer, prose):
    found = spans(blind(deaf=True), own_tokenizer, PIECES, texts=prose)
    given = found.table[found.table["place"] == "as given"].set_index("span")
    assert list(given["gradient"]) == pytest.approx([0, 0, 0, 1])
    assert list(given["replacement"][:3]) == [0, 0, 0]
    assert given["replacement"][4] > 0
    assert found.statistics["explained"]["gradient"] == {"place": None, "span": None, "rest": None}


def test_two_documents_behind_a_token_of_the_tokenizer(here, small):
    (here / "asked.txt").write_text("w1 w2 w3\n--\nw9 w8\n--\nw7 w7")
    assert command.main([*small, "--spans", "--prompt", "asked.txt", "--separator", r"\n--\n"]) == 0
    folder = here / "position-card/small/spans/asked"
    page = (folder / "spans.md").read_text()
    for said in ("`w5`", "| weights | F32 of a GGUF file", r"'\n--\n'"):
        assert said in page
    table = pd.read_csv(folder / "spans.csv")
    assert list(table["begins"][:3]) == [1, 1 + 4, 1 + 4 + 3]
    assert table.loc[table["place"] == "as given", "gradient"].sum() < 1


def test_a_token_over_a_border_belongs_to_the_first_span():
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "bc": 2, "d": 3}, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    assert [list(found) for found in span_measuring.span_tokens(["a b", "c d ", "a"], tokenizer)] == [[0, 2], [3], [0]]
    with refused("span 2"):
        span_measuring.span_tokens(["a b", "c ", "d"], tokenizer)


def test_orders_that_are_cut_otherwise_are_counted(prose):
    found = spans(blind(), numbered(), ["w1 w", "2 w3 ", "w4"], texts=" ".join(["w6 w7"] * 20))
    assert found.facts["recut"] == 1
    assert found.facts["next"]["token"].startswith("token ")  # the model knows more than the 64 of the tokenizer


def test_what_was_measured_is_kept_unless_it_is_forced(asked, monkeypatch, capsys):
    assert run("--prompt", "asked.txt", "--dry-run") == 0
    assert " 4 spans " in capsys.readouterr().err
    assert not asked.exists()
    assert run("--prompt", "asked.txt", "--quiet") == 0
    before = (asked / "spans.csv").read_bytes()
    assert run("--prompt", "asked.txt", "--seed", "1") == 2
    assert "(seed)" in capsys.readouterr().err
    assert run("--prompt", "asked.txt", "--seed", "1", "--force", "--quiet") == 0
    assert (asked / "spans.csv").read_bytes() != before
    monkeypatch.setattr(span_measuring, "measure_planned_spans", None)
    assert run("--prompt", "asked.txt", "--seed", "1", "--quiet") == 0


@pytest.mark.parametrize(
    ("typed", "status", "named"),
    [
        ("--spans", 2, "--prompt FILE"),
        ("--prompt asked.txt", 2, "--spans"),
        ("--separator x", 2, "--separator"),
        ("--spans --prompt asked.txt --lengths 12", 2, "--lengths"),
        ("--spans --prompt nothing.txt", 2, "nothing.txt"),
        ("--spans --prompt asked.txt --separator zzz", 2, "1 span"),
        ("--spans --prompt - --text -", 2, "standard input"),
        ("--spans --prompt long.txt --text texts.jsonl --threads 1", 1, "my-model takes 64"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(asked, here, assert_refused, typed, status, named):
    (here / "long.txt").write_text("a b c d\n\n" * 30)
    assert_refused(["./my-model", *typed.split()], status, named)


def test_a_start_token_of_a_prompt_is_there_once_and_others_are_told():
    tokenizer = numbered("w5")
    tokenizer.add_special_tokens(["w5", "w6"])
    text = [" ".join(f"w{(place * 7) % 40 + 8}" for place in range(100))]
    pieces = ["w9 w10 \n\n", "w11 w6 w12\n\n", "w13"]
    plain, marked = (
        spans(llama(), tokenizer, [start + pieces[0], *pieces[1:]], texts=text, threads=1) for start in ("", "w5")
    )
    pd.testing.assert_frame_equal(plain.table, marked.table)
    assert "`w5` before every prompt; the prompt holds `w6` |" in plain.page
    assert "that at the beginning of the prompt is left out; the prompt holds `w6` |" in marked.page
