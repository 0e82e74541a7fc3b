"""What Herasimchyk et al. 2026 claim.

Rows that depend on lambda are those of its estimator in the paper's text, the Frobenius norm. On attention and content
every data set speaks, on rollouts the primary one.
"""

from position_bias.claims.claim import Claim

PAPER = "structural"
CHECKS, PROPOSITIONS = "structural/checks", "structural/propositions"
FIGURES, TABLES = "figures/structural", "results/tables/structural"

LAMBDA = "; .*, lambda by frobenius"  # where, and how lambda is estimated, of a quantity


def _proposition(number: str, statement: str) -> Claim:
    """What holds without exception; that its effect can be seen at all is a row of ours, and is left out."""
    item = f"Proposition {number}"
    rows = {"item": item.replace(".", r"\."), "source": item.replace(".", r"\.")}
    name = f"structural-proposition-{number.replace('.', '-')}"
    return Claim(name, PAPER, item, statement, PROPOSITIONS, rows, f"{FIGURES}/forces.pdf")


def _theorem(branch: str, statement: str) -> Claim:
    rows = {"item": rf"Theorem 5\.5(\({branch}\))?"}
    name, item = f"structural-theorem-5-5-{branch}", f"Theorem 5.5({branch})"
    return Claim(name, PAPER, item, statement, PROPOSITIONS, rows, f"{FIGURES}/dichotomy.pdf")


def _lemma(part: str, statement: str) -> Claim:
    name, item = f"structural-lemma-5-4-{part}", f"Lemma 5.4({part})"
    rows = {"item": rf"Lemma 5\.4\({part}\)"}
    return Claim(name, PAPER, item, statement, PROPOSITIONS, rows, f"{TABLES}/propositions.md")


def _measured(name: str, item: str, statement: str, quantity: str, shown: str, ranges: bool = False) -> Claim:
    """Of the models that were measured. Where intervals are the range over all layers, they are not widened."""
    rows = {"item": r"(?!training).*", "quantity": quantity}
    return Claim(f"structural-{name}", PAPER, item, statement, CHECKS, rows, shown, ranges=ranges)


CLAIMS: tuple[Claim, ...] = (
    _measured(
        "assumption-4-1",
        "Assumption 4.1",
        "Mean attention is stochastically monotone, but for rare and tiny violations",
        r"(share of triples violated|prefix mass missing over all triples); .*, kernel measured; .*",
        f"{TABLES}/monotonicity.md",
        ranges=True,
    ),
    Claim(
        "structural-smooth-kernels",
        PAPER,
        "Assumption 4.1",
        "Smoothly decaying kernels are stochastically monotone",
        PROPOSITIONS,
        {"item": r"Assumption 4\.1"},
        f"{TABLES}/propositions.md",
    ),
    _proposition("4.2", "Every further causal layer moves rollout mass to earlier tokens"),
    _proposition("4.3", "Stronger residual connections move rollout mass to recent tokens"),
    _proposition("4.4", "Encodings that prefer recent keys move rollout mass to recent tokens"),
    _proposition("4.5", "Positive diagonal content moves mass to recent tokens, negative to early ones"),
    Claim(
        "structural-assumption-needed",
        PAPER,
        "Assumption 4.1",
        "ours: each of Propositions 4.2 to 4.5 can fail without the assumption",
        PROPOSITIONS,
        {"source": "ours: the assumption is needed"},
        f"{TABLES}/propositions.md",
    ),
    _lemma("i", "Hidden states stay bounded, however many the layers"),
    _lemma("ii", "Attention weights stay above a floor that is the same at every depth"),
    _theorem("i", "If the sum of lambda is finite, rollout never collapses to the first token"),
    _theorem("ii", "If the sum of lambda is infinite, rollout collapses to the first token"),
    _measured(
        "figure-1-a",
        "Figure 1",
        "(a) Attention alone collapses to the first token, unlike measured influence",
        r"first of \(a\) - \(d\); .*",
        f"{FIGURES}/fig1.pdf",
    ),
    _measured(
        "figure-1-b",
        "Figure 1",
        "(b) With measured residual mixing alone, rollout is U-shaped",
        rf"(first|last) / middle of \(b\){LAMBDA}",
        f"{FIGURES}/fig1.pdf",
    ),
    _measured(
        "figure-1-c",
        "Figure 1",
        "(c) Content preserves the U",
        rf"(first|last) / middle of \(c\){LAMBDA}",
        f"{FIGURES}/fig1.pdf",
    ),
    _measured(
        "figure-1-content",
        "Figure 1",
        "Content reduces the peak at the first token and shifts mass to later ones",
        rf"(first of \(b\) - \(c\)|mean position of \(c\) - \(b\)){LAMBDA}",
        f"{FIGURES}/fig1.pdf",
    ),
    _measured(
        "figure-1-d",
        "Figure 1",
        "(d) The measured influence of tokens is U-shaped",
        rf"(first|last) / middle of \(d\); .*|influence, first / predicted minimum of \(b\){LAMBDA}",
        f"{FIGURES}/fig1.pdf",
    ),
    _measured(
        "figure-1-minimum",
        "Section 6.3",
        "The minima of (b) and of the measured influence nearly coincide",
        rf"argmin distance of \(b\){LAMBDA}",
        f"{FIGURES}/fig1.pdf",
    ),
    _measured(
        "table-2",
        "Table 2",
        "(b) and (c) are closer to the measured influence than (a)",
        rf"wasserstein of \(a\) - \([bc]\){LAMBDA}",
        f"{TABLES}/table2.md",
    ),
    _measured(
        "table-2-content",
        "Appendix C.3",
        "Content, (c), refines the fit of (b) at 256 tokens",
        rf"wasserstein of \(b\) - \(c\){LAMBDA}",
        f"{TABLES}/table2.md",
    ),
    _measured(
        "figure-4",
        "Figure 4",
        "Residual mixing decreases with depth in most models",
        rf"spearman with depth of \(lambda\){LAMBDA}",
        f"{FIGURES}/fig4.pdf",
    ),
    _measured(
        "table-5",
        "Table 5",
        "Mean content logits are alike on the diagonal, and alike below it",
        r"similarity (within|below) the diagonal; .*, way causal; .*",
        f"{TABLES}/table5.md",
        ranges=True,
    ),
    _measured(
        "null-half",
        "Table 2",
        "ours: (b) is closer to the measured influence than with a lambda of 1/2",
        rf"wasserstein of \(half\) - \(b\){LAMBDA}",
        f"{TABLES}/table2.md",
    ),
    _measured(
        "null-last",
        "Table 2",
        "ours: (b) is closer to the measured influence than all mass on the last token",
        rf"wasserstein of \(last\) - \(b\){LAMBDA}",
        f"{TABLES}/table2.md",
    ),
    _measured(
        "null-minimum",
        "Section 6.3",
        "ours: (b) tells the minimum better than guessing the first token does",
        rf"argmin distance of \(uniform\) - \(b\){LAMBDA}",
        f"{FIGURES}/fig1.pdf",
    ),
)
