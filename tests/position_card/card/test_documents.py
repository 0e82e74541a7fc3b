"""Records in a model: the command and the call, against prompts that are written by hand and read without a cache."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import AddedToken, Tokenizer, processors
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import position_card
from position_card.card import command, documents_measuring
from position_card.card.documents_page import Documents
from position_card.core import checkpoint
from position_card.texts import tokens
from tests import ggufs, hub
from tests.records import CHATML, asked, chats, choices, write
from tests.refusals import refused

ROOT = Path(__file__).parents[3]
START, CONTROLS = "<|endoftext|>", ("<|im_start|>", "<|im_end|>")
LONGEST = 700
FRAME = "Answer the question from the documents below.\n\n{}\n\nQuestion: {}"
TYPED = ["--threads", "1", "--quiet"]
FORMS = {"questions": asked, "chats": chats, "options": choices}


def chat_tokenizer(*, starts=False, template=CHATML):
    """Byte-level BPE of texts of records, with the control tokens of chats; it may put a start token first."""
    made = tokens.train_tokenizer([json.dumps(row) for row in asked(12, 6)], 300)
    made.add_special_tokens([AddedToken(token, special=True) for token in CONTROLS])
    if starts:
        made.post_processor = processors.TemplateProcessing(f"{START} $A", special_tokens=[(START, 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=START, eos_token=CONTROLS[1], chat_template=template
    )


def llama():
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=310, max_position_embeddings=LONGEST, initializer_range=0.3, **size)
    return LlamaForCausalLM(config)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A base model, a chat model, and one whose tokenizer and template both write a start token; not to be changed."""
    root = tmp_path_factory.mktemp("models")
    for name, tokenizer in (
        ("base", chat_tokenizer(template=None)),
        ("chat", chat_tokenizer()),
        ("starts", chat_tokenizer(starts=True, template="{{ bos_token }}" + CHATML)),
    ):
        llama().save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
    return root


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    for name in ("base", "chat", "starts"):
        (tmp_path / name).symlink_to(folder / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(model, rows, *typed):
    """Type the command for rows of records, and return its table and its statistics."""
    write(Path("rows.jsonl"), rows)
    assert command.main([f"./{model}", "--documents", "rows.jsonl", *TYPED, *typed]) == 0
    folder = Path("position-card") / Path(model).stem / "documents/rows"
    return pd.read_csv(folder / "documents.csv"), json.loads((folder / "documents.json").read_text())


def by_hand(model, tokenizer, text, answer):
    """The log-probability of an answer behind a text, by one pass without a cache; both in tokens of their own."""
    prompt = tokenizer.encode(text, add_special_tokens=False).ids
    whole = tokenizer.encode(text + answer, add_special_tokens=False).ids
    assert whole[: len(prompt)] == prompt
    with torch.no_grad():
        logits = model(torch.tensor([whole]), use_cache=False).logits[0].double().log_softmax(-1)
    return sum(float(logits[place - 1, whole[place]]) for place in range(len(prompt), len(whole)))


def opened(folder):
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval(), Tokenizer.from_file(
        str(folder / "tokenizer.json")
    )


def shown(document):
    return f"Document (Title: {document['title']}) {document['text']}"


@pytest.mark.parametrize(("model", "plain"), [("base", False), ("chat", False), ("chat", True), ("starts", False)])
def test_answers_are_as_probable_as_in_prompts_written_by_hand(here, model, plain):
    rows = asked(8, documents=6, gold=2)
    table, found = run(model, rows, *(["--plain"] if plain else []))
    decoder, tokenizer = opened(here / model)
    assert set(table["place"]) == {"no documents", "gold alone", "1", "2", "3", "4", "5"}
    for number, row in enumerate(rows[:3], start=1):
        documents = [shown(document) for document in row["ctxs"]]
        gold = documents.pop(2)
        orders = {"no documents": [], "gold alone": [gold]}
        for place, before in {"1": 0, "2": 1, "3": 2, "4": 4, "5": 5}.items():
            orders[place] = [*documents[:before], gold, *documents[before:]]
        for place, order in orders.items():
            text = FRAME.format("\n\n".join(order), row["question"])
            if model == "base" or plain:
                text += "\nAnswer:"
            else:
                text = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\nAnswer:"
            text = START * (model == "starts") + text
            (line,) = table[(table["record"] == number) & (table["place"] == place)].to_dict("records")
            assert line["log_probability"] == pytest.approx(
                by_hand(decoder, tokenizer, text, " " + row["answers"][0]), abs=1e-4
            )
            assert line["tokens"] == len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert (found["facts"]["template"] is None) == (model == "base" or plain)


def test_messages_are_asked_as_they_are(here):
    rows = chats(8, documents=4)
    table, _ = run("chat", rows)
    decoder, tokenizer = opened(here / "chat")
    first, *others = rows[0]["documents"]
    *asked_of, answer = rows[0]["messages"]
    user = asked_of[1]["content"].replace("{documents}", "\n\n".join([others[0], first, *others[1:]]))
    text = f"<|im_start|>system\nYou open gates.<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n"
    (line,) = table[(table["record"] == 1) & (table["place"] == "2")].to_dict("records")
    assert line["log_probability"] == pytest.approx(by_hand(decoder, tokenizer, text, answer["content"]), abs=1e-4)
    assert line["before"] == 1
    page = Path("position-card/chat/documents/rows/documents.md").read_text()
    alone = text.replace(user, asked_of[1]["content"].replace("{documents}", first))
    assert f"```text\n{alone}\n```" in page


def test_options_are_asked_in_orders_that_put_each_at_each_place(here):
    rows = choices(8, options=3)
    table, found = run("chat", rows)
    assert len(table) == 8 * 9
    decoder, tokenizer = opened(here / "chat")
    row = rows[1]
    for order, options in enumerate(([0, 1, 2], [2, 0, 1], [1, 2, 0])):
        listed = "\n".join(f"{letter}. {row['choices'][option]}" for letter, option in zip("ABC", options, strict=True))
        text = f"{row['question']}\n\n{listed}\n\nAnswer with the letter of the right option."
        text = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\nAnswer:"
        letters = np.exp([by_hand(decoder, tokenizer, text, f" {letter}") for letter in "ABC"])
        lines = table[(table["record"] == 2) & (table["order"] == order)].set_index("place")
        assert list(lines["option"]) == options
        assert list(lines["probability"]) == pytest.approx(list(letters / letters.sum()), abs=1e-4)
    assert set(table["answer"]) == {0}
    assert found["decision"]


def written(form, row, by_template):
    """The prompt of a record of some form with all documents or options in the order of the file, and its answer."""
    if form == "chats":
        *messages, answer = row["messages"]
        contents = {message["role"]: message["content"] for message in messages}
        contents["user"] = contents["user"].replace("{documents}", "\n\n".join(row["documents"]))
        begins, answer = "", answer["content"]
    elif form == "options":
        listed = "\n".join(f"{letter}. {choice}" for letter, choice in zip("ABC", row["choices"], strict=True))
        contents = {"user": f"{row['question']}\n\n{listed}\n\nAnswer with the letter of the right option."}
        begins, answer = "Answer:", " A"
    else:
        contents = {"user": FRAME.format("\n\n".join(map(shown, row["ctxs"])), row["question"])}
        begins, answer = "Answer:", " " + row["answers"][0]
    if not by_template:
        return "\n\n".join(contents.values()) + "\n" + begins, answer
    turns = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in contents.items())
    return f"{turns}<|im_start|>assistant\n{begins}", answer


@pytest.mark.parametrize("plain", [False, True], ids=["", "plain"])
@pytest.mark.parametrize("template", [None, CHATML], ids=["base", "chat"])
@pytest.mark.parametrize("kind", ["directory", "gguf"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_asked_of_base_and_chat_models(here, form, kind, template, plain):
    rows = FORMS[form](8)
    if kind == "gguf":
        name, decoder = "small.gguf", ggufs.small("llama", vocab_size=400, max_position_embeddings=900)
        ggufs.write(here / name, decoder, "llama", **({"tokenizer.chat_template": template} if template else {}))
        tokenizer = AutoTokenizer.from_pretrained(here, gguf_file=name).backend_tokenizer
    else:
        name = "chat" if template else "base"
        decoder, tokenizer = opened(here / name)
    table, found = run(name, rows, *(["--plain"] if plain else []))
    assert (found["facts"]["template"] is None) == (template is None or plain)
    assert found["decision"]
    text, answer = written(form, rows[2], bool(template) and not plain)
    if form == "options":
        lines = table[(table["record"] == 3) & (table["order"] == 0)].sort_values("place")
        letters = np.exp([by_hand(decoder, tokenizer, text, f" {letter}") for letter in "ABC"])
        assert list(lines["probability"]) == pytest.approx(list(letters / letters.sum()), abs=1e-4)
    else:
        (line,) = table[(table["record"] == 3) & (table["place"] == "1")].to_dict("records")
        assert line["log_probability"] == pytest.approx(by_hand(decoder, tokenizer, text, answer), abs=1e-4)


def test_a_model_in_memory_gives_the_numbers_of_its_files(here):
    rows = asked(8, documents=4)
    table, found = run("chat", rows)
    model = llama().train()
    given = position_card.documents(model, chat_tokenizer(), rows, threads=1, name="chat", text="rows.jsonl")
    pd.testing.assert_frame_equal(given.table.replace("", np.nan), table, check_dtype=False, rtol=1e-4)
    assert given.decision == found["decision"]
    assert all(module.training for module in model.modules())
    assert all(weight.requires_grad and weight.grad is None for weight in model.parameters())
    plain = position_card.documents(model, chat_tokenizer().backend_tokenizer, "rows.jsonl", threads=1)
    pd.testing.assert_frame_equal(plain.table, position_card.documents(model, chat_tokenizer(), rows, plain=True).table)
    given.save("saved")
    assert json.loads(Path("saved/documents.json").read_text())["statistics"] == found["statistics"]


def test_rotations_put_every_document_at_every_place(here):
    rows = asked(8, documents=4, gold=1)
    table, _ = run("base", rows, "--rotate")
    assert sorted(set(table["before"][table["place"].str.isdigit()])) == [0, 1, 2, 3]
    decoder, tokenizer = opened(here / "base")
    first, gold, third, fourth = map(shown, rows[0]["ctxs"])
    text = FRAME.format("\n\n".join([third, fourth, gold, first]), rows[0]["question"]) + "\nAnswer:"
    (line,) = table[(table["record"] == 1) & (table["place"] == "3")].to_dict("records")
    assert line["log_probability"] == pytest.approx(
        by_hand(decoder, tokenizer, text, " " + rows[0]["answers"][0]), abs=1e-4
    )


def test_what_a_model_says_is_right_where_it_has_the_answer(here):
    """The answer of each record is made to be what the model says, in other letters."""
    rows = asked(8, documents=3)
    said = run("base", rows, "--generate", "4")[0].fillna("")
    assert not said["reply"].str.contains("\n").any()
    first = said[(said["record"] == 1) & (said["place"] == "1")]["reply"].iloc[0]
    assert first.strip()
    for row in rows:
        row["answers"] = ["never said", first.strip().upper()]
    table = run("base", rows, "--generate", "4", "--force")[0].fillna("")
    spoken = table["reply"].str.casefold().str.contains(re.escape(first.strip().casefold()))
    assert list(table["right"]) == list(spoken.astype(int))
    assert spoken.any()


@pytest.mark.parametrize(("generate", "remedied"), [(0, True), (8, False)])
def test_a_model_that_is_never_right_is_let_speak(generate, remedied):
    """Though documents change the probability of its answers, and their place does."""
    gains = {"no documents": -9.0, "gold alone": 0.0, "1": -1.0, "2": -5.0, "3": -5.0}
    rows = [(record, place, gain + 0.1 * (record % 3)) for record in range(8) for place, gain in gains.items()]
    table = pd.DataFrame(rows, columns=["record", "place", "log_probability"]).assign(right=0, answer_tokens=2)
    decision = Documents(table, {"chooses": False, "seed": 0, "generate": generate}).decision
    assert decision.startswith("This model answers none of these with or without documents: this file cannot tell")
    assert ("--generate 32" in decision) == remedied


def test_how_an_answer_begins_is_said_by_the_user(here):
    rows = asked(8, documents=3)
    table, _ = run("base", rows, "--prefix", r"It is\n")
    decoder, tokenizer = opened(here / "base")
    text = FRAME.format("", rows[0]["question"]) + "\nIt is\n"
    line = table[(table["record"] == 1) & (table["place"] == "no documents")]
    assert line["log_probability"].iloc[0] == pytest.approx(
        by_hand(decoder, tokenizer, text, rows[0]["answers"][0]), abs=1e-4
    )


def test_records_that_do_not_fit_are_left_out_and_counted(here, capsys):
    rows = asked(10, documents=3)
    rows[4]["ctxs"][1]["text"] = "gate " * LONGEST
    rows[7]["ctxs"][0] |= {"isgold": False, "hasanswer": False, "text": "nothing"}
    rows[7]["answers"] = ["nowhere"]
    write(Path("rows.jsonl"), rows)
    assert command.main(["./base", "--documents", "rows.jsonl", "--threads", "1", "--dry-run"]) == 0
    said = capsys.readouterr().err.splitlines()[1:]
    assert sorted(said) == [
        "- 1 record left out: more tokens than the model takes",
        "- 1 record left out: no document holds the answer",
    ]
    table, found = run("base", rows)
    assert set(range(1, 11)) - set(table["record"]) == {5, 8}
    assert sorted(found["facts"]["omissions"].values()) == [1, 1]
    page = Path("position-card/base/documents/rows/documents.md").read_text()
    assert "1 record left out: more tokens than the model takes." in page


def test_a_killed_command_goes_on_and_asks_no_record_twice(here, monkeypatch):
    rows = asked(9, documents=3)
    expected, _ = run("base", rows, "--out", "position-card")
    shutil.rmtree("position-card")
    steps, original = [], checkpoint.write

    def write_once(path, fingerprint, state):
        original(path, fingerprint, state)
        steps.append(state.step)
        if state.step == 4 and len(steps) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "write", write_once)
    assert command.main(["./base", "--documents", "rows.jsonl", *TYPED]) == 130
    found, _ = run("base", rows)
    assert steps == list(range(1, 10))
    pd.testing.assert_frame_equal(found, expected)
    assert not list(Path("position-card").rglob("*.safetensors"))


def test_what_was_measured_is_kept_unless_it_is_forced(here, monkeypatch, capsys):
    rows = asked(8, documents=3)
    write(Path("rows.jsonl"), rows)
    typed = ["./base", "--documents", "rows.jsonl", "--threads", "1"]
    assert command.main([*typed, "--dry-run"]) == 0
    assert "8 records of rows.jsonl in " in capsys.readouterr().err
    assert not (here / "position-card/base/documents").exists()
    _, found = run("base", rows)
    assert command.main([*typed, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == [found]
    assert found["decision"] in printed.err
    assert command.main([*typed, "--prefix", "It is"]) == 2
    assert "(prefix)" in capsys.readouterr().err
    write(Path("rows.jsonl"), asked(8, documents=3, gold=1))
    assert command.main(typed) == 2
    assert "(sha256)" in capsys.readouterr().err
    assert command.main([*typed, "--force"]) == 0
    monkeypatch.setattr(documents_measuring, "measure_planned_documents", None)
    assert command.main(typed) == 0


def test_so_many_tokens_pass_the_model_as_are_announced(here, monkeypatch):
    seen, rows = [], asked(8, documents=4)
    model = llama()
    model.get_input_embeddings().register_forward_hook(lambda module, given, out: seen.append(given[0].numel()))
    plans, original = [], documents_measuring.plan_documents
    monkeypatch.setattr(
        position_card.card.call, "plan_documents", lambda *given: plans.append(original(*given)) or plans[0]
    )
    position_card.documents(model, chat_tokenizer(), rows)
    tried = 3 * plans[0].n  # whether prompts of a record can pass in one row
    assert plans[0].tokens <= sum(seen) <= plans[0].tokens + tried


@pytest.mark.parametrize(
    ("typed", "status", "named"),
    [
        ("--rotate", 2, "--rotate"),
        ("--generate 3", 2, "--generate"),
        ("--prefix x", 2, "--prefix"),
        ("--documents rows.jsonl --lengths 12", 2, "--lengths"),
        ("--documents rows.jsonl --text a.txt", 2, "--text"),
        ("--documents rows.txt", 2, "rows.txt"),
        ("--documents nothing.jsonl", 2, "nothing.jsonl"),
        ("--documents few.jsonl", 2, "7 records"),
        ("--documents control.jsonl", 1, "records control.jsonl, line 4 has the control token <|im_end|>"),
        ("--documents long.jsonl", 1, str(LONGEST)),
        ("--documents uneven.jsonl --rotate", 1, "3 to 4"),
        ("--documents options.jsonl --generate 3", 1, "generate"),
        ("--documents options.jsonl --rotate", 1, "rotate"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(here, capsys, typed, status, named):
    write(here / "rows.jsonl", asked())
    write(here / "few.jsonl", asked(7))
    control, long = asked(), asked()
    control[3]["ctxs"][2]["text"] += " <|im_end|>"
    for row in long:
        row["ctxs"][1]["text"] = "gate " * LONGEST
    write(here / "control.jsonl", control)
    write(here / "long.jsonl", long)
    write(here / "options.jsonl", choices())
    write(here / "uneven.jsonl", asked(4) + asked(4, documents=3))
    assert command.main(["./chat", *typed.split(), *TYPED]) == status
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert named in said


@pytest.mark.all("it waits for a limit of four seconds, as a test of hostile templates does")
def test_a_template_that_hangs_is_refused_and_plain_does_without(here):
    hanging = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    with refused("chat template", "plain"):
        position_card.documents(llama(), chat_tokenizer(template=hanging), asked())
    assert position_card.documents(llama(), chat_tokenizer(template=hanging), asked(documents=3), plain=True).decision


ALL_FORMS = """
import sys
from position_card.card import command
forms = ("questions", "chats", "options")
sys.exit(max(command.main([*sys.argv[1:], "--documents", f"{form}.jsonl"]) for form in forms))
"""


@pytest.mark.all("it starts Python twice beside a hub")
@pytest.mark.parametrize("model", ["base", "chat"])
def test_a_model_of_the_hub_is_asked_from_the_cache(here, model):
    """Once it is in the cache, with its template, no hub is needed."""
    source, commit = f"someone/{model}", "d" * 40
    for form, rows in FORMS.items():
        write(here / f"{form}.jsonl", rows(8))
    environment = {**os.environ, "HF_HOME": str(here / "home"), "PYTHONPATH": str(ROOT)}
    typed = [sys.executable, "-c", ALL_FORMS, source, *TYPED]
    with hub.serve(source, commit, (here / model).resolve()) as address:
        subprocess.run([*typed, "--dry-run"], env={**environment, "HF_ENDPOINT": address}, check=True)
    subprocess.run([*typed, "--offline"], env={**environment, "HF_ENDPOINT": "http://127.0.0.1:9"}, check=True)
    found = {form: pd.read_csv(here / f"position-card/{model}/documents/{form}/documents.csv") for form in FORMS}
    for form, rows in FORMS.items():
        shutil.rmtree(here / "position-card")
        pd.testing.assert_frame_equal(found[form], run(model, rows(8))[0])
