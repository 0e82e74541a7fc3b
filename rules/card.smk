# The position card of any decoder, asked for by `card` alone: snakemake card --config model=./my-model text=./texts.jsonl.
# Out: results/card/{card}/model.json, which says what files the model has and, of one of the hub, at which commit;
# results/texts/{text}/test.parquet, a text that is no data set of the configuration; results/card/{card}/, what was measured
# and its tables, or of several models their ratios; figures/card/{card}. A killed measurement goes on from checkpoints/measure/card/.


include: "files/card.smk"


wildcard_constraints:
    card=any_of(CARDS),


rule card_model:
    """See that a model can be opened, and note which files it has. Where jobs are sent to a cluster, this one stays."""
    input:
        trained=card_trained,
    output:
        "results/card/{card}/model.json",
    wildcard_constraints:
        card=any_of(name for name, of in CARD_MODELS.items() if of.untrained is None),
    localrule: True
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(4000),
        runtime=2880,
    params:
        source=card_source,
        revision=card_revision,
        files=card_files,
    script:
        "../scripts/card/model.py"


rule card_text:
    """Read the text of a card, a file, a directory or a data set of the hub. Where jobs are sent to a cluster, this one stays."""
    output:
        texts="results/texts/{text}/test.parquet",
        manifest="results/texts/{text}.json",
    log:
        "logs/texts/{text}.log",
    wildcard_constraints:
        text=re.escape(CARD_TEXT.name),
    localrule: True
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=memory(4000),
        runtime=240,
    params:
        source=CARD_TEXT.place,
        local=CARD_TEXT.kind == "path",
        files=card_text_files(),
        characters=config["card"]["characters"],
    script:
        "../scripts/card/text.py"


rule card_measure:
    """Measure lambda, influence, attention and kernels of any decoder, or of an untrained copy, at every length that fits."""
    input:
        model=card_record,
        texts=card_text("texts"),
    output:
        "results/card/{card}/measured.safetensors",
    priority: within_limit("card", "card.gpus", lambda wildcards: config["card"]["gpus"])
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(card_memory()),
        runtime=config["card"]["minutes"],
        gpu=gpus("card", config["card"]["gpus"]),
        nodes=1,
    params:
        **{key: config["card"][key] for key in of_card.MEASURING},
        seed=config["seed"],
        files=card_files,
        untrained=card_untrained,
    script:
        "../scripts/card/measure.py"


# Tables, pages and the figure: a row each, see rules/made.smk.

CARD_INTERVALS = {
    "replicates": config["rollout"]["bootstrap"],
    "level": config["rollout"]["level"],
    "seed": config["seed"],
}
CARD_NEEDS = {"mem_mb": memory(2000), "runtime": 60}

FILES |= {
    "card_beside": made.Made(
        "How much the ends of a prompt weigh in each of several models, and the quotients of the first by the others.",
        "card.beside:made",
        {"measured": card_measured},
        CARD_INTERVALS
        | {
            "card": lambda wildcards: wildcards.card,
            "titles": card_shown,
            "text": CARD_TEXT.shown,
        },
        outputs={
            "ratios": "results/card/{card}/ratios.csv",
            "page": "results/card/{card}/card.md",
        },
        wildcards={"card": any_of(name for name, of in CARDS.items() if len(of) > 1)},
        needs=CARD_NEEDS,
    ),
    "card_tables": made.Made(
        "Roll attention out in every way that applies, compare with the measured influence, and say so in words.",
        "card.page:made",
        {
            "measurements": "results/card/{card}/measured.safetensors",
            "model": card_record,
            "text": card_text("manifest"),
        },
        CARD_INTERVALS
        | {
            "card": lambda wildcards: wildcards.card,
            "title": card_title,
            "untrained": lambda wildcards: of_card.with_copies(wildcards.card, config),
        },
        outputs={
            **{name: f"results/card/{{card}}/{name}.csv" for name in ("layers", "profile", "distances", "statistics")},
            "page": "results/card/{card}/card.md",
        },
        wildcards={"card": any_of(CARD_MODELS)},
        needs=CARD_NEEDS,
    ),
}
FIGURES["card/{card}"] = made.Made(
    "The position card: lambda by layer, influence beside rollouts and baselines, attention by distance, a row a model.",
    "card.figures:card_of_models",
    {
        "layers": card_tables("layers"),
        "profiles": card_tables("profile"),
        "distances": card_tables("distances"),
    },
    {"models": card_models, "text": CARD_TEXT.shown},
    name="card_draw",
    caption="card/draw",
)


rule card:
    """The position card of each model that is named: snakemake card --config model=./my-model."""
    input:
        all_cards,


onsuccess:
    if made := cards_made(workflow):
        print(*made, sep="\n", file=sys.stderr)
