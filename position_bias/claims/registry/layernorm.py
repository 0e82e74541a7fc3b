"""What Kim et al. 2026 claim, as a page about the paper reports it; and what is ours."""

from functools import partial

from position_bias.claims.claim import Claim

TABLE = "layernorm/checks"

_claim = partial(Claim, paper="layernorm", table=TABLE)

CLAIMS: tuple[Claim, ...] = (
    _claim(
        name="layernorm-theorem",
        item="theorem, layer 2",
        statement="With a norm, scores of layer 2 rise strictly towards recent keys",
        rows={"item": "Layer 2, norm", "quantity": "(largest|smallest) step of .*", "source": "theorem on layer 2"},
        shown="figures/layernorm/closed_form.pdf",
    ),
    _claim(
        name="layernorm-three-tokens",
        item="first version",
        statement="Layer-2 scores of three tokens are .154, .132 and .150",
        rows={"item": "Three tokens", "quantity": ".* by the closed form; .*"},
        shown="figures/layernorm/closed_form.pdf",
        published="layernorm_three_tokens_3_2",  # of the three, the farthest from what is computed
    ),
    _claim(
        name="layernorm-recency",
        item="abstract",
        statement="Stacked causal attention with LayerNorm favours recent tokens",
        rows={
            "item": "Layer 2, norm|Depth",
            "quantity": r"recency( of layers \d+-\d+)?; RMSNorm, .*",
            "predicted": "> .*",
        },
        shown="figures/layernorm/scores.pdf",
    ),
    _claim(
        name="layernorm-primacy",
        item="abstract",
        statement="Stacked causal attention alone favours early tokens",
        rows={"item": "Depth", "quantity": r"recency of layers \d+-\d+; no norm, .*", "predicted": "< .*"},
        shown="figures/layernorm/scores.pdf",
    ),
    _claim(
        name="layernorm-random-recency",
        item="abstract",
        statement="With random weights and norms, recent inputs of attention are more alike",
        rows={
            "item": "Random weights",
            "quantity": r"recency of the Gram, layer \d+; .*",
            "source": "theorem on layer 2|abstract: .*",
        },
        shown="figures/layernorm/random_weights.pdf",
    ),
    _claim(
        name="layernorm-random-primacy",
        item="abstract",
        statement="With random weights and no norm, early tokens are favoured",
        rows={
            "item": "Random weights",
            "quantity": r"recency of the Gram over its mean size, layer \d+; .*",
            "source": "abstract: .*",
        },
        shown="figures/layernorm/random_weights.pdf",
    ),
    _claim(
        name="layernorm-residuals",
        item="reply, Section 3",
        statement="Without residual connections the recency disappears",
        rows={"source": "the paper as its review page reports it: (it removes|without residuals).*"},
        shown="figures/layernorm/anisotropy.pdf",
    ),
    _claim(
        name="layernorm-embeddings",
        item="reply, Section 3",
        statement="Embeddings drawn alike at every position show no recency",
        rows={"item": "Independent embeddings"},
        shown="figures/layernorm/anisotropy.pdf",
    ),
    _claim(
        name="layernorm-trained",
        item="abstract",
        statement="Trained decoders with norms attend to recent tokens",
        rows={"item": "Trained decoders", "quantity": r"position, layer \d+; .*", "predicted": "> .*"},
        shown="figures/layernorm/trained.pdf",
    ),
    _claim(
        name="layernorm-trained-gram",
        item="abstract",
        statement="In trained decoders with norms, recent inputs of attention are more alike",
        rows={"item": "Trained decoders", "quantity": r"relative recency of the Gram, layer \d+; .*"},
        shown="figures/layernorm/trained.pdf",
    ),
    _claim(
        name="layernorm-settled",
        item="what settles it",
        statement="Without LayerNorm, trained decoders do not prefer later tokens",
        rows={"item": "Trained decoders", "source": "what would settle it: .*"},
        shown="figures/layernorm/trained.pdf",
    ),
    _claim(
        name="layernorm-trained-primacy",
        item="abstract",
        statement="Without LayerNorm, trained decoders attend to early tokens",
        rows={"item": "Trained decoders", "quantity": r"position, layer \d+; none", "predicted": "< .*"},
        shown="figures/layernorm/trained.pdf",
    ),
    _claim(
        name="layernorm-language-models",
        item="abstract",
        statement="In language models, recent inputs of attention are more alike",
        rows={"item": "Language models"},
        shown="figures/layernorm/pretrained.pdf",
    ),
    _claim(
        name="layernorm-closed-form",
        item="layer 2",
        statement="ours: closed forms of layer 2 agree with simulation",
        rows={"item": "Layer 2", "quantity": "largest distance of .*"},
        shown="figures/layernorm/closed_form.pdf",
    ),
    _claim(
        name="layernorm-anisotropy",
        item="embeddings",
        statement="ours: anisotropy takes recency away, but adds to it with residuals",
        rows={"item": "Anisotropy", "quantity": "recency of layer 2 at anisotropy .*"},
        shown="figures/layernorm/anisotropy.pdf",
    ),
    _claim(
        name="layernorm-deep-primacy",
        item="depth",
        statement="ours: without norm early tokens stay favoured at great depth",
        rows={"item": "Depth", "source": "as the abstract .*"},
        shown="figures/layernorm/depth.pdf",
    ),
    _claim(
        name="layernorm-scaling",
        item="scores",
        statement="ours: scores divided by sqrt(d) leave no recency at layer 2",
        rows={"item": r"Scaling by 1/sqrt\(d\)"},
        shown="results/tables/layernorm/checks.md",
    ),
    _claim(
        name="layernorm-retrieval",
        item="retrieval",
        statement="ours: LayerNorm moves the gaps of retrieval towards recent items",
        rows={"item": "Retrieval networks", "quantity": ".* gap, none - (pre|post); .*"},
        shown="figures/layernorm/emergence.pdf",
    ),
)
