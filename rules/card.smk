# The position card of any decoder, asked for by `card` alone: snakemake card --config model=./my-model text=./texts.jsonl.
# Out: results/card/{card}/model.json, which says what files the model has and, of one of the hub, at which commit;
# results/texts/{text}/test.parquet, a text that is no data set of the configuration; results/card/{card}/, what was measured
# and its tables, or of several models their ratios; figures/card/{card}. A killed measurement goes on from checkpoints/measure/card/.

from position_bias.card import runs as runs_of_card

CARDS = runs_of_card.cards(config)
CARD_TEXT = runs_of_card.text(config)
CARD_FIGURES = of_card.cards(config)  # name -> the cards that it shows
cards_shown = lambda wildcards: CARD_FIGURES[wildcards.card]


wildcard_constraints:
    card=any_of(CARD_FIGURES),


rule card_model:
    """See that a model can be opened, and note which files it has. Where jobs are sent to a cluster, this one stays."""
    input:
        trained=lambda wildcards: CARDS[wildcards.card].trained,
    output:
        "results/card/{card}/model.json",
    wildcard_constraints:
        card=any_of(name for name, card in CARDS.items() if card.model.untrained is None),
    localrule: True
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(4000),
        runtime=2880,
    params:
        source=lambda wildcards: CARDS[wildcards.card].source,
        revision=lambda wildcards: CARDS[wildcards.card].revision,
        files=lambda wildcards: CARDS[wildcards.card].files,
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
        text=re.escape(CARD_TEXT.text.name),
    localrule: True
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=memory(4000),
        runtime=240,
    params:
        source=CARD_TEXT.text.place,
        local=CARD_TEXT.text.kind == "path",
        files=CARD_TEXT.files,
        characters=config["card"]["characters"],
    script:
        "../scripts/card/text.py"


rule card_measure:
    """Measure lambda, influence, attention and kernels of any decoder, or of an untrained copy, at every length that fits."""
    input:
        model=lambda wildcards: CARDS[wildcards.card].record,
        texts=CARD_TEXT.texts,
    output:
        directory("results/card/{card}/measured"),
    conda:
        "../envs/language-models.yaml"
    resources:
        mem_mb=memory(runs_of_card.megabytes(config)),
        runtime=config["card"]["minutes"],
        gpu=gpus("card", config["card"]["gpus"]),
        nodes=1,
    params:
        **{key: config["card"][key] for key in of_card.MEASURING},
        seed=config["seed"],
        files=lambda wildcards: CARDS[wildcards.card].files,
        untrained=lambda wildcards: CARDS[wildcards.card].model.untrained,
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
        {"measured": collect("results/card/{card}/measured", card=cards_shown)},
        CARD_INTERVALS
        | {
            "card": lambda wildcards: wildcards.card,
            "titles": lambda wildcards: {name: CARDS[name].model.shown for name in cards_shown(wildcards)},
            "text": CARD_TEXT.text.shown,
        },
        outputs={
            "ratios": "results/card/{card}/ratios.csv",
            "page": "results/card/{card}/card.md",
        },
        wildcards={"card": any_of(name for name, shown in CARD_FIGURES.items() if len(shown) > 1)},
        needs=CARD_NEEDS,
    ),
    "card_tables": made.Made(
        "Roll attention out in every way that applies, compare with the measured influence, and say so in words.",
        "card.page:made",
        {
            "measurements": "results/card/{card}/measured",
            "model": lambda wildcards: CARDS[wildcards.card].record,
            "text": CARD_TEXT.manifest,
        },
        CARD_INTERVALS
        | {
            "card": lambda wildcards: wildcards.card,
            "title": lambda wildcards: CARDS[wildcards.card].title,
            "untrained": lambda wildcards: of_card.with_copies(wildcards.card, config),
        },
        outputs={
            **{name: f"results/card/{{card}}/{name}.csv" for name in ("layers", "profile", "distances", "statistics")},
            "page": "results/card/{card}/card.md",
        },
        wildcards={"card": any_of(CARDS)},
        needs=CARD_NEEDS,
    ),
}
FIGURES["card/{card}"] = made.Made(
    "The position card: lambda by layer, influence beside rollouts and baselines, attention by distance, a row a model.",
    "card.figures:card_of_models",
    {
        "layers": collect("results/card/{card}/layers.csv", card=cards_shown),
        "profiles": collect("results/card/{card}/profile.csv", card=cards_shown),
        "distances": collect("results/card/{card}/distances.csv", card=cards_shown),
    },
    {
        "models": lambda wildcards: [CARDS[name].model.called for name in cards_shown(wildcards)],
        "text": CARD_TEXT.text.shown,
    },
    name="card_draw",
    caption="card/draw",
)


rule card:
    """The position card of each model that is named: snakemake card --config model=./my-model."""
    input:
        required(
            CARDS,
            lambda _: runs_of_card.made(config),
            "the position card needs a model: snakemake card --config model=./my-model, which may also be an id of the "
            f"Hugging Face hub, or one of {', '.join([*config['models'], *config['hub_models']])}",
        ),


onsuccess:
    if any(job.rule.name == "card" for job in workflow.dag.jobs):
        folder = Path() if Path.cwd() == ROOT else Path.cwd()
        print(*runs_of_card.where_to_look(config, folder), sep="\n", file=sys.stderr)
