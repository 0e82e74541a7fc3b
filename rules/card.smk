# The position card of any decoder, for clusters and for models of the configuration; a model and a laptop need position-card alone.
# Asked for by `card` alone: snakemake card --config model=bloom.
# Out, in results/card/{card}: model.json, texts.jsonl and sources.json, which files the model has, the text, and where both come
# from; measured/, what was measured; card.md, card.pdf, card.svg, card.png and tables/, the card, or of several models their
# comparison. A killed measurement goes on from checkpoints/measure/card/.

from position_bias.card import runs as runs_of_card

CARDS = runs_of_card.cards(config)
CARD_FIGURES = runs_of_card.figures(config)  # name -> the cards that it shows
CARD_TEXT = of_card.text(config)


wildcard_constraints:
    card=any_of(CARD_FIGURES),


rule card_fetch:
    """Fetch a model and a text, and see that the model can be opened. Where jobs are sent to a cluster, this one stays."""
    input:
        trained=lambda wildcards: CARDS[wildcards.card].trained,
        corpus=f"results/corpus/{CARD_TEXT.given}/test.parquet" if CARD_TEXT.kind == "configured" else [],
    output:
        record="results/card/{card}/model.json",
        texts="results/card/{card}/texts.jsonl",
        sources="results/card/{card}/sources.json",
    wildcard_constraints:
        card=any_of({card.origin for card in CARDS.values()}),
    localrule: True
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(4000),
        runtime=2880,
    params:
        source=lambda wildcards: CARDS[wildcards.card].source,
        revision=lambda wildcards: CARDS[wildcards.card].revision,
        text=lambda _: CARD_TEXT.place,
        files=lambda wildcards: CARDS[wildcards.card].files,
    script:
        "../scripts/card/fetch.py"


rule card_measure:
    """Measure any decoder, or an untrained copy of it, at every length that fits."""
    input:
        **{
            name: lambda wildcards, file=file: f"results/card/{CARDS[wildcards.card].origin}/{file}"
            for name, file in [("record", "model.json"), ("texts", "texts.jsonl"), ("sources", "sources.json")]
        },
    output:
        directory("results/card/{card}/measured"),
    wildcard_constraints:
        card=any_of(CARDS),
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(runs_of_card.megabytes(config)),
        runtime=config["card"]["minutes"],
        gpu=gpus("card", config["card"]["gpus"]),
        nodes=1,
    params:
        options=runs_of_card.options(config),
        precision=config["card"]["precision"],
        gpus=config["card"]["gpus"],
        untrained=lambda wildcards: CARDS[wildcards.card].model.untrained,
        name=lambda wildcards: CARDS[wildcards.card].model.shown,
        text=lambda _: CARD_TEXT.shown,
        files=lambda wildcards: CARDS[wildcards.card].files,
    script:
        "../scripts/card/measure.py"


rule card_write:
    """Roll attention out, compare with the measured influence, say so in words, and draw; or compare several models."""
    input:
        measured=lambda wildcards: expand("results/card/{card}/measured", card=CARD_FIGURES[wildcards.card]),
        templates=[project(f"position_bias/card/{name}.md") for name in ("page", "beside")],
    output:
        page="results/card/{card}/card.md",
        tables=directory("results/card/{card}/tables"),
        figure=expand("results/card/{{card}}/card.{suffix}", suffix=["pdf", "svg", "png"]),
    conda:
        "../envs/card.yaml"
    resources:
        mem_mb=memory(2000),
        runtime=60,
    params:
        cards=lambda wildcards: CARD_FIGURES[wildcards.card],
        intervals=INTERVALS,
    script:
        "../scripts/card/write.py"


rule card:
    """The position card of each model that is named: snakemake card --config model=bloom."""
    input:
        required(
            CARDS,
            lambda _: expand("results/card/{card}/card.md", card=CARD_FIGURES),
            "the position card needs a model: snakemake card --config model=bloom, or a directory or an id of the hub; "
            "position-card does the same without Snakemake",
        ),
