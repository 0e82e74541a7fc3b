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
    """Records of the form of lost-in-the-middle: the code of a gate stands in one document, at place `gold`."""
    rows = []
    for number in range(count):
        gates = [COLOURS[(number + place) % len(COLOURS)] for place in range(documents)]
        codes = [NUMBERS[(3 * number + 2 * place) % len(NUMBERS)] for place in range(documents)]
        ctxs = [
            {
                "id": str(place),
                "title": f"The {gate} gate",
                "text": f"The code of the {gate} gate is {code}.",
                "hasanswer": place == gold,
                "isgold": place == gold,
            }
            for place, (gate, code) in enumerate(zip(gates, codes, strict=True))
        ]
        question = f"What is the code of the {gates[gold]} gate?"
        rows.append({"question": question, "answers": [codes[gold]], "ctxs": ctxs, "nq_annotated_gold": {}} | changes)
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
