"""What the report of a run opens with: five questions, and what this run answers, each with a figure."""

import pandas as pd

from position_bias.verdicts.pages import effect, predicted, scales

FINDINGS = (  # question, figure, claims
    (
        "Do gradients, replacement and recall say the same of the first word?",
        "structural/pretrained",
        ("structural-pretrained-first", "retrieval-recall-first"),
    ),
    ("Does attention rollout predict influence?", "structural/fig1", ("structural-table-2", "structural-figure-1-d")),
    (
        "Does influence add up in sums or in squares?",
        "structural/directions",
        ("structural-directions-squares", "structural-directions-same", "structural-directions-sums"),
    ),
    (
        "Does a causal mask make the first token an attention sink?",
        "emergence/scales_sinks",
        ("emergence-figure-8a",),
    ),
    (
        "Do the printed constants and steps of proofs hold?",
        "emergence/theorems",
        ("emergence-appendix-a-e", "emergence-appendix-f-i"),
    ),
)


def page(table: pd.DataFrame) -> str:
    """The findings of a scorecard in reStructuredText, for a file in a folder beside figures/."""
    known = table.assign(trained=scales(table)).set_index("claim")
    lines = []
    for question, figure, claims in FINDINGS:
        lines += [question, "-" * len(question), ""]
        for row in known.loc[list(claims)].to_dict("records"):
            scale = f", {row['trained']}" if row["trained"] else ""
            number = f"{effect(row)}, predicted {predicted(row)}: {row['quantity']}{scale}"
            lines += [f"* **{row['verdict']}**: {_plain(row['statement'])} ({_plain(number)}).", ""]
        lines += [".. raw:: html", f"   :file: ../figures/{figure}.svg", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A text whose signs are no markup."""
    return "".join(f"\\{letter}" if letter in "*`|_\\" else letter for letter in text)
