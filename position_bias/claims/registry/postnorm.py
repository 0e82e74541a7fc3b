"""What Zsamboki et al. 2025 claim, as a summary of the paper reports it; and what is ours."""

from functools import partial

from position_bias.claims.claim import Claim

TABLE = "postnorm/checks"

_claim = partial(Claim, paper="postnorm", table=TABLE)

CLAIMS: tuple[Claim, ...] = (
    _claim(
        name="postnorm-generalises",
        item="Sections 4.3, 6",
        statement="Norms after attention help beyond trained lengths: Set Complement",
        rows={"item": "Set complement", "quantity": r"mean TVD beyond L, pre - (post|peri|peri-init); .*"},
        shown="figures/postnorm/set_complement.pdf",
    ),
    _claim(
        name="postnorm-best",
        item="design tradeoffs",
        statement="Post-norm generalises best, and peri-norm less",
        rows={"quantity": "mean TVD beyond L, peri - post; .*"},
        shown="figures/postnorm/set_complement.pdf",
    ),
    _claim(
        name="postnorm-dispersion",
        item="Section 4.3",
        statement="Attention thins out as 1/s in sequences of length s",
        rows={"item": "Dispersion", "quantity": r"slope of ln\(largest weight\) .*"},
        shown="figures/postnorm/resharpening.pdf",
    ),
    _claim(
        name="postnorm-constant",
        item="Section 4.2",
        statement="Trained attention is constant over the tokens of a sequence",
        rows={"item": "Dispersion", "quantity": "largest weight times s, at L; .*"},
        shown="figures/postnorm/resharpening.pdf",
    ),
    _claim(
        name="postnorm-precision",
        item="Theorem 4.2",
        statement="The longer the sequence, the less precise is the output",
        rows={"item": "Dispersion", "quantity": "TVD, longest - L; .*"},
        shown="figures/postnorm/set_complement.pdf",
    ),
    _claim(
        name="postnorm-precision-law",
        item="Theorem 4.2",
        statement="Without post-norm precision falls as C/2^s, as the summary prints it",
        rows={"item": "Gap laws", "quantity": r"slope of ln\(gap\) on ln\(C/2\^s\) .*"},
        shown="figures/postnorm/resharpening.pdf",
    ),
    _claim(
        name="postnorm-rank",
        item="Section 4.2",
        statement="The Set Complement Task needs a matrix of rank v - 1",
        rows={"item": "Construction", "quantity": "squared distance of .*"},
        shown="results/tables/postnorm/checks.md",
    ),
    _claim(
        name="postnorm-dimension",
        item="Section 4.2",
        statement="Trained networks need at least v - 1 dimensions for it",
        rows={"item": "Dimension", "predicted": "> .*"},
        shown="figures/postnorm/dimension.pdf",
    ),
    _claim(
        name="postnorm-ema",
        item="Section 4.5",
        statement="An EMA of the weights helps where many tokens are legal",
        rows={"item": "Averaging", "quantity": ".*, raw - EMA; .*"},
        shown="figures/postnorm/bema.pdf",
    ),
    _claim(
        name="postnorm-bema",
        item="Section 4.5",
        statement="BEMA helps where many tokens are legal",
        rows={"item": "Averaging", "quantity": r".*, raw - BEMA; eta = 0\.2, .*"},  # the paper's
        shown="figures/postnorm/bema.pdf",
    ),
    _claim(
        name="postnorm-bema-correction",
        item="Section 4.5",
        statement="The correction of its bias makes BEMA better than an EMA",
        rows={"item": "Averaging", "quantity": r".*, EMA - BEMA; eta = 0\.2, .*"},
        shown="figures/postnorm/bema.pdf",
    ),
    _claim(
        name="postnorm-bema-gain",
        item="Section 4.5",
        statement="The more tokens are legal, the larger is the gain of BEMA",
        rows={"item": "Averaging", "quantity": r"\(raw - BEMA\) / raw, .*; eta = 0\.2, .*"},
        shown="figures/postnorm/bema.pdf",
    ),
    _claim(
        name="postnorm-languages",
        item="Section 6",
        statement="Norms after attention help in every formal language: TVD",
        rows={"item": "Languages", "quantity": r"mean TVD beyond L, pre - .*"},
        shown="figures/postnorm/formal_languages.pdf",
    ),
    _claim(
        name="postnorm-classification",
        item="Section 6",
        statement="Norms after attention help in every formal language: ROC AUC",
        rows={"item": "Languages", "quantity": r"mean ROC AUC beyond L, .* - pre; .*"},
        shown="figures/postnorm/formal_languages.pdf",
    ),
    _claim(
        name="postnorm-gradients",
        item="design tradeoffs",
        statement="Gradients grow larger with post-norm than with pre- or peri-norm",
        rows={"item": "Stability", "quantity": "log10 of the highest gradient norm, .*"},
        shown="figures/postnorm/stability.pdf",
    ),
    _claim(
        name="postnorm-breaks",
        item="failure signs",
        statement="Loss spikes or NaN: most with post-norm, then peri-norm, then pre-norm",
        rows={"item": "Stability", "quantity": "(loss spikes|iterations that are not finite), .*"},
        shown="figures/postnorm/stability.pdf",
    ),
    _claim(
        name="postnorm-final-norm",
        item="Section 6",
        statement="ours: a norm before the read-out alone brings a part of the gain",
        rows={"item": "Set complement", "quantity": "mean TVD beyond L, (pre - pre-final|pre-final - peri); .*"},
        shown="figures/postnorm/set_complement.pdf",
    ),
    _claim(
        name="postnorm-dispersed-law",
        item="Section 4.3",
        statement="ours: without post-norm the gap of logits falls as C/s",
        rows={"item": "Gap laws", "quantity": r"slope of ln\(gap\) on ln\(C/s\) .*"},
        shown="figures/postnorm/resharpening.pdf",
    ),
    _claim(
        name="postnorm-resharpened-law",
        item="Section 4.3",
        statement="ours: with norms after attention it falls as C/sqrt(s(v-s))",
        rows={"item": "Gap laws", "quantity": r"slope of ln\(gap\) on ln\(C/sqrt\(s\(v-s\)\)\) .*"},
        shown="figures/postnorm/resharpening.pdf",
    ),
    _claim(
        name="postnorm-construction",
        item="Section 4.3",
        statement="ours: networks built by hand follow both laws exactly",
        rows={"item": "Construction", "quantity": "largest distance of a TVD .*"},
        shown="figures/postnorm/resharpening.pdf",
    ),
)
