"""Records in each of the three forms, of our own writing, for tests of what reads and measures them."""

import gzip
import json

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
COLOURS = ["red", "green", "blue", "grey", "black", "white"]

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def asked(count=8, documents=4, gold=0, **changes):
    """Records of the form of lost-in-the-middle: the code of a gate stands in one document, at place `gold`.

    As in its files of 10 to 30 documents, the gold one is a passage of the annotation, which was not retrieved, so that
    it has no id, no score and no index of its retrieval.
    """
    rows = []
    for number in range(count):
        gates = [COLOURS[(number + place) % len(COLOURS)] for place in range(documents)]
        codes = [NUMBERS[(3 * number + 2 * place) % len(NUMBERS)] for place in range(documents)]
        passages = [
            {"title": f"The {gate} gate", "text": f"The code of the {gate} gate is {code}."}
            for gate, code in zip(gates, codes, strict=True)
        ]
        ctxs = [
            passage | {"hasanswer": True, "isgold": True}
            if place == gold
            else {"id": str(71445 + place), **passage, "score": f"{1.05 - place / 100:.7f}"}
            | {"hasanswer": False, "original_retrieval_index": place, "isgold": False}
            for place, passage in enumerate(passages)
        ]
        annotation = {
            "title": passages[gold]["title"],
            "long_answer": f"{passages[gold]['text']} It was painted last year.",
            "chunked_long_answer": passages[gold]["text"],
            "short_answers": [codes[gold]],
        }
        record = {"question": f"What is the code of the {gates[gold]} gate?", "answers": [codes[gold]], "ctxs": ctxs}
        rows.append(record | {"nq_annotated_gold": annotation} | changes)
    return rows


def chats(count=8, documents=4, system="You open gates."):
    """The same as messages of a chat, with documents as texts."""
    rows = []
    for record in asked(count, documents):
        messages = [
            *([{"role": "system", "content": system}] if system else []),
            {"role": "user", "content": "Notes:\n\n{documents}\n\n" + record["question"]},
            {"role": "assistant", "content": record["answers"][0]},
        ]
        rows.append({"messages": messages, "documents": [document["text"] for document in record["ctxs"]]})
    return rows


def choices(count=8, options=3):
    """Questions with options, of which the first is right."""
    return [
        {
            "question": f"Which number comes after {NUMBERS[number]}?",
            "choices": [NUMBERS[(number + step) % len(NUMBERS)] for step in range(1, options + 1)],
            "answer": 0,
        }
        for number in range(count)
    ]


def write(file, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(text.encode()))
    else:
        file.write_text(text)
    return str(file)
