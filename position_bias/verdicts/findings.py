"""What the report of a run opens with: four questions, and what this run answers, each with a figure."""

import pandas as pd

from position_bias.verdicts.pages import effect, predicted, scales

FINDINGS = {  # question -> figure and claims
    "Do gradients, replacement and recall agree on the first word?": "structural/pretrained "
    "structural-pretrained-first structural-recall-first",
    "Does attention rollout predict influence?": "structural/fig1 structural-table-2 structural-figure-1-d",
    "Does a causal mask make the first token a sink?": "emergence/scales_sinks emergence-figure-8a",
    "Do printed constants and steps of proofs hold?": "emergence/theorems "
    "emergence-appendix-a-e emergence-appendix-f-i",
}


def page(table: pd.DataFrame) -> str:
    """The findings of a scorecard in reStructuredText, for a file in a folder beside figures/."""
    known = table.assign(trained=scales(table)).set_index("claim")
    lines = []
    for question, named in FINDINGS.items():
        figure, *claims = named.split()
        lines += [question, "-" * len(question), ""]
        for row in known.loc[claims].to_dict("records"):
            number = f"{effect(row)}, predicted {predicted(row)}: {row['quantity']} {row['trained']}".rstrip()
            lines += [f"* **{row['verdict']}**: {_plain(row['statement'])} ({_plain(number)}).", ""]
        lines += [".. raw:: html", f"   :file: ../figures/{figure}.svg", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A text whose signs are no markup."""
    return "".join(f"\\{letter}" if letter in "*`|_\\" else letter for letter in text)
