# Which files the rules of the position card read, worked out from its arguments.

CARD_MODELS = of_card.by_card(config)
CARD_TEXT = of_card.text(config)
CARDS = of_card.cards(config)
CARD_GB = 1e3  # megabytes


def card_trained(wildcards):
    """The directory of a model that is trained here, of its first seed; none of any other."""
    model = CARD_MODELS[wildcards.card].given
    if model not in config["models"]:
        return []
    return f"results/models/{model}/{checkpoints(model, [LAST])[0]}"


def card_source(wildcards):
    """Where a model comes from, as a directory or an id of the hub."""
    model = CARD_MODELS[wildcards.card]
    if model.given in config["hub_models"]:
        return config["hub_models"][model.given]["source"]
    return f"./{trained}" if (trained := card_trained(wildcards)) else model.place


def card_revision(wildcards):
    """The commit that the configuration names; none of a model that it does not know."""
    described = config["hub_models"].get(CARD_MODELS[wildcards.card].given, {})
    return described.get("revision")


def card_files(wildcards):
    """What tells the files of a directory that was named from others of the same names."""
    model = CARD_MODELS[wildcards.card]
    if model.kind != "path":
        return []
    return of_card.stamp(of_card.files_of_model(model.path))


def card_text_files():
    """The same of a text."""
    if CARD_TEXT.kind != "path":
        return []
    return of_card.stamp(of_card.files_of_text(CARD_TEXT.path))


def card_text(file):
    """A file of the text: of a data set of the configuration, or of what a text is made into that is named otherwise."""
    if CARD_TEXT.kind == "configured":
        return {
            "texts": f"results/corpus/{CARD_TEXT.name}/test.parquet",
            "manifest": f"results/corpus/{CARD_TEXT.name}.json",
        }[file]
    return {
        "texts": f"results/texts/{CARD_TEXT.name}/test.parquet",
        "manifest": f"results/texts/{CARD_TEXT.name}.json",
    }[file]


def card_record(wildcards):
    """What was noted of a model, or of the model that an untrained copy is of."""
    return f"results/card/{of_card.of_origin(wildcards.card, config)}/model.json"


def card_untrained(wildcards):
    """The seed of an untrained copy; none of a model that was trained."""
    return CARD_MODELS[wildcards.card].untrained


def card_tables(table):
    """A table of every model that a figure shows."""
    return lambda wildcards: [f"results/card/{name}/{table}.csv" for name in CARDS[wildcards.card]]


def card_title(wildcards):
    """What the page of a card is of, in words."""
    return f"{CARD_MODELS[wildcards.card].shown} on {CARD_TEXT.shown}"


def card_measured(wildcards):
    """What was measured of every model that a figure shows."""
    return [f"results/card/{name}/measured.safetensors" for name in CARDS[wildcards.card]]


def card_shown(wildcards):
    """What a reader calls the models that a figure shows, by the names of their cards."""
    return {name: CARD_MODELS[name].shown for name in CARDS[wildcards.card]}


def card_models(wildcards):
    """How a figure calls its models."""
    return [CARD_MODELS[name].called for name in CARDS[wildcards.card]]


def cards_made(workflow):
    """Where to look, a line for each figure, once the run of `card` has ended; the whole path in another directory.

    The page that compares several models comes first.
    """
    if not any(job.rule.name == "card" for job in workflow.dag.jobs):
        return []
    here = Path() if Path.cwd() == Path(workflow.basedir) else Path.cwd()
    return [
        f"Read {here / 'results/card' / card / 'card.md'}; " f"the figure is {here / 'figures/card' / card}.png"
        for card in sorted(CARDS, key=lambda card: -len(CARDS[card]))
    ]


def card_memory():
    """Megabytes that measuring the largest of the models may take: what is said, or guessed from directories' weights.

    They are opened in float32, for which bfloat16 grows to twice its size.
    """
    if said := config["card"]["memory"]:
        return int(said * CARD_GB)
    paths = [model.path for model in CARD_MODELS.values() if model.kind == "path"]
    sizes = [sum(file.stat().st_size for file in path.glob("*.safetensors")) for path in paths]
    return int(3000 + 3 * max(sizes, default=0) / 1e6)


def all_cards(_):
    """Figures and tables of every model that is named; without one, asking for them is an error that says how to."""
    if not CARD_MODELS:
        sys.exit(
            "error: the position card needs a model: snakemake card --config model=./my-model, which may also be an "
            "id of the Hugging Face hub, or one of " + ", ".join([*config["models"], *config["hub_models"]])
        )
    made = [f"figures/card/{card}.{suffix}" for card in CARDS for suffix in ("pdf", "svg", "png")]
    files = ("layers.csv", "profile.csv", "distances.csv", "statistics.csv")
    return (
        made
        + [f"results/card/{card}/card.md" for card in CARDS]
        + [f"results/card/{name}/{file}" for name in CARD_MODELS for file in files]
    )
