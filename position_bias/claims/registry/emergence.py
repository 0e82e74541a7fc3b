"""What Wu et al. 2025 claim.

A theorem that asks for some constant is judged with one that suffices, and what its proof prints is a claim of its own.
"""

from position_bias.claims.claim import Claim

PAPER = "emergence"
FIGURES, TABLES = "figures/emergence", "results/tables/emergence"


def _theorem(name: str, item: str, statement: str, rows: dict[str, str]) -> Claim:
    """On attention without learning: rows are judged by their worst draw, intervals are ranges of draws."""
    shown = f"{TABLES}/theorems.md"
    return Claim(f"emergence-{name}", PAPER, item, statement, "emergence/theorems", rows, shown, ranges=True)


def _trained(name: str, item: str, statement: str, rows: dict[str, str], shown: str) -> Claim:
    """On trained networks."""
    return Claim(f"emergence-{name}", PAPER, item, statement, "emergence/checks", rows, shown)


CLAIMS: tuple[Claim, ...] = (
    _theorem(
        "theorem-4-1",
        "Theorem 4.1",
        "Under a causal mask, layers converge exponentially to the first token",
        {"item": r"Theorem 4\.1"},
    ),
    _theorem(
        "theorem-4-2",
        "Theorem 4.2",
        "Under a sliding window, too, at a rate set by length over window",
        {
            "item": r"Theorem 4\.2",
            "quantity": r"largest 1 - P\(first token\) .*|largest P_ij .*, C = 1 - eps\^R; .*",
        },
    ),
    _theorem(
        "theorem-4-3",
        "Theorem 4.3",
        "Under a prefix mask, to the prefix, every token of which keeps a share",
        {"item": r"Theorem 4\.3", "quantity": r"largest .*|smallest P_ik over kappa .*"},
    ),
    _theorem(
        "theorem-4-5",
        "Theorem 4.5",
        "With a decay mask, t layers give binom(t+x, x) e^-xm at distance x, up to C",
        {
            "item": r"Lemma 4\.4|Theorem 4\.5",
            "quantity": r"smallest .*C_min as printed; .*|largest .*C_max corrected; .*",
        },
    ),
    _theorem(
        "theorem-4-5-peak",
        "Theorem 4.5",
        "Its peak is at x = t/(e^m - 1): earlier with depth, more recent with decay",
        {
            "item": r"Theorem 4\.5",
            "quantity": r"(largest distance|smallest step|largest step) of the peak of P .*",
            "source": r"Theorem 4\.5; content-free",
        },
    ),
    _theorem(
        "theorem-4-7",
        "Theorem 4.7",
        "With RoPE, t layers give binom(t+x, x) exp(-c (x theta)^2), up to constants",
        {
            "item": r"Lemma (4\.6|I\.1)|Theorem (4\.7|I\.2)",
            "quantity": r"(smallest|largest) [AP]_ij over .* constants corrected",
        },
    ),
    _theorem(
        "theorem-4-7-peak",
        "Theorem 4.7",
        "With RoPE, depth moves the peak to earlier tokens, the angle to recent ones",
        {"item": r"Theorem 4\.7", "quantity": r"(smallest|largest) step of the (critical point of L|peak of P) .*"},
    ),
    _theorem(
        "appendix-a-e",
        "Appendices A-E",
        "The constants that the proofs print for masks and decay suffice",
        {"item": r"Theorem 4\.[1235]|Lemma 4\.4", "quantity": ".* as printed.*"},
    ),
    _theorem(
        "appendix-f-i",
        "Appendices F-I",
        "The steps of the proofs for RoPE hold as printed",
        {"item": r"Lemma (4\.6|I\.3)|Theorem 4\.7", "quantity": ".* as printed.*", "source": "(?!.*ours).*"},
    ),
    _trained(
        "causal-primacy",
        "Figures 2, 4",
        "Trained without bias, a causal mask alone favours the first item",
        {
            "item": "Figure 4",
            "source": r"Section 5\.1: a causal mask alone .*",
            "quantity": "first-(middle|last) gap; .*",
        },
        f"{FIGURES}/fig4.pdf",
    ),
    _trained(
        "depth",
        "Figures 2, 4",
        "Without residual connections depth amplifies primacy, whatever the encoding",
        {"item": "Figure 4", "source": r"Section 5\.1, K\.1: deeper .*"},
        f"{FIGURES}/fig4.pdf",
    ),
    _trained(
        "encodings",
        "Figures 2, 4",
        "The decay mask and RoPE reduce primacy, the decay mask more",
        {"item": "Figure 4", "source": r"Section 5\.1: both reduce primacy, .*"},
        f"{FIGURES}/fig4.pdf",
    ),
    _trained(
        "small-at-the-end",
        "Figures 2, 4",
        "The gap between middle and last is smaller than those of the first item",
        {"item": "Figure 4", "source": r"Section 5\.1: notably smaller"},
        f"{FIGURES}/fig4.pdf",
    ),
    _trained(
        "footnote-2",
        "Footnote 2",
        "Deep RoPE with residual connections loses the middle without biased data",
        {"item": "Figure 5", "source": "footnote 2: .*"},
        f"{FIGURES}/fig5.pdf",
    ),
    _trained(
        "figure-3-causal",
        "Figure 3",
        "A causal mask brings in position without encoding; no mask does not",
        {"item": "Figure 3", "source": r"Section 5\.2: (the causal mask induces primacy by itself|neither .*)"},
        f"{FIGURES}/fig3.pdf",
    ),
    _trained(
        "figure-3-u",
        "Figure 3",
        "Encodings trained on both ends lose the middle; the beginning does best",
        {"item": "Figure 3", "source": r"Section 5\.2: encodings .*"},
        f"{FIGURES}/fig3.pdf",
    ),
    _trained(
        "figure-6-causal",
        "Figures 3, 6",
        "A causal mask alone favours the beginning, whatever the bias of the data",
        {"item": "Figure (3|6[abc])", "source": r"Section 5\.2, K\.3: a causal mask alone .*"},
        f"{FIGURES}/fig6c.pdf",
    ),
    _trained(
        "figure-6-encodings",
        "Figure 6",
        "Encodings learn a bias at whatever position the training data has it",
        {"item": "Figure 6[abc]", "source": r"K\.3: encodings .*"},
        f"{FIGURES}/fig6b.pdf",
    ),
    _trained(
        "figure-8a",
        "Figure 8a",
        "Under a causal mask the first token becomes an attention sink",
        {"item": "Figure 8a", "source": r"K\.4: .*"},
        f"{FIGURES}/fig8a.pdf",
    ),
    _trained(
        "figure-8b",
        "Figure 8b",
        "Under a sliding window the first token becomes a sink where windows are wide",
        {"item": "Figure 8b", "source": r"K\.4: .*"},
        f"{FIGURES}/fig8b.pdf",
    ),
    _trained(
        "figure-8c",
        "Figure 8c",
        "Under a prefix mask every token of the prefix becomes a sink",
        {"item": "Figure 8c", "source": r"K\.4: .*"},
        f"{FIGURES}/fig8c.pdf",
    ),
    _trained(
        "sinks-null",
        "Figure 8",
        "ours: sinks are beyond what exactly uniform attention has there",
        {"item": "Figure 8[abc]", "quantity": ".* - uniform attention, sink metric; .*"},
        f"{FIGURES}/fig8a.pdf",
    ),
    _trained(
        "figure-9",
        "Figure 9",
        "Fixed vocabulary: depth and encodings do the same without residual",
        {"item": "Figure 9", "source": r"Section 5\.1, K\.1: deeper .*|Section 5\.1: both reduce primacy, .*"},
        f"{FIGURES}/fig9.pdf",
    ),
    _trained(
        "figure-10",
        "Figure 10",
        "Fixed vocabulary: with residual connections, too, depth amplifies primacy",
        {"item": "Figure 10", "source": "Appendix L: so it does with residual connections"},
        f"{FIGURES}/fig10.pdf",
    ),
    _trained(
        "figure-11",
        "Figure 11",
        "Fixed vocabulary: masks and encodings learn the same biases",
        {"item": "Figure 11[abcd]"},
        f"{FIGURES}/fig11a.pdf",
    ),
    _trained(
        "figure-13",
        "Figure 13",
        "Fixed vocabulary: the same tokens become sinks",
        {"item": "Figure 13[abc]", "source": r"K\.4: .*"},
        f"{FIGURES}/fig13a.pdf",
    ),
    _trained(
        "isotropic",
        "Appendix L",
        "A fixed vocabulary without common direction resembles the Gaussian one",
        {"item": "Appendix L", "quantity": "first-last gap, lambda = 0 - gaussian; .*"},
        f"{TABLES}/gaps.md",
    ),
    _trained(
        "harder",
        "Appendix L",
        "The common direction of a fixed vocabulary makes the task harder",
        {"item": "Appendix L", "quantity": "accuracy, gaussian - fixed; .*"},
        f"{TABLES}/checks.md",
    ),
)
