# Which files the rules of emergence read, worked out from the configuration.

import csv

from position_bias.emergence.studies import BY_BIAS, BY_DEPTH, OF_MAPS, OF_SINKS

EMERGENCE = config["emergence"]
EMERGENCE_TESTS = {  # that training makes; tables and figures choose among them
    name: EMERGENCE["testing"][name] for name in ("every", "sequences_along", "sequences")
}
EMERGENCE_THEORY = ("convergence", "decay", "rope", "peaks")  # curves of theorems
SHALLOW = 2  # layers of every study but those of depth

EMERGENCE_STUDIES = dict.fromkeys([*BY_DEPTH.values(), *BY_BIAS.values(), *OF_SINKS.values(), ("isotropic", "plain")])
EVIDENCE_SINKS = [  # of the studies that figures show the sinks of
    study
    for study in EVIDENCE["emergence"]
    if study in [f"{vocabulary}/{name}/depth{SHALLOW}" for vocabulary, name in OF_SINKS.values()]
]


def emergence_seeds(wildcards):
    """How many seeds a study has at a depth."""
    if wildcards.study == "ends":
        return EMERGENCE["seeds"]["ends"]
    return EMERGENCE["seeds"]["shallow" if int(wildcards.depth) <= SHALLOW else "deep"]


def emergence_training(wildcards):
    """How the networks of a study train."""
    kinds = {"ends": "ends", **dict.fromkeys(["first", "middle", "last"], "position")}
    training = EMERGENCE["training"]
    iterations = training["iterations"][kinds.get(wildcards.study, "unbiased")]
    return dict(training, iterations=iterations)


def emergence_depths(vocabulary, study):
    """The layers that a study is trained with; none, where the configuration trains no network of it."""
    depths = EMERGENCE["depths"][vocabulary].get(study, [SHALLOW])
    return depths if EMERGENCE["networks"][study] else []


def emergence_curves(*shown):
    """The learning curves of studies, each a pair of vocabulary and study, at every depth."""
    return [
        f"results/emergence/{vocabulary}/{study}/depth{depth}/curves.parquet"
        for vocabulary, study in shown
        for depth in emergence_depths(vocabulary, study)
    ]


def emergence_shallow(file, *shown):
    """A file of the shallow networks of studies, each a pair of vocabulary and study."""
    return [
        f"results/emergence/{vocabulary}/{study}/depth{SHALLOW}/{file}"
        for vocabulary, study in shown
        if SHALLOW in emergence_depths(vocabulary, study)
    ]


def emergence_shown(figures):
    """Those of the figures that show something, with what: a configuration may train no network of a study."""
    return [(name, shown) for name, shown in figures.items() if emergence_depths(*shown)]


def emergence_without_encoding(figures):
    """As `emergence_shown`, of figures that show shallow networks without positional encoding alone."""
    return [
        (name, (vocabulary, study))
        for name, (vocabulary, study) in emergence_shown(figures)
        if SHALLOW in emergence_depths(vocabulary, study)
        and any(Path(network).name == "none" for network in EMERGENCE["networks"][study])  # MASK/ENCODING
    ]


def at_both_scales():
    """The studies of this run, a short one, that evidence/ has networks of after the paper's training, at some depth."""
    if config["scale"] == "paper":
        return []
    long = []
    for path in evidence_tables("emergence/*/runs.csv"):
        with open(path, encoding="utf-8", newline="") as table:
            long += [row for row in csv.DictReader(table) if row["scale"] == "paper"]
    return list(
        dict.fromkeys(
            (row["vocabulary"], row["study"])
            for row in long
            if row["study"] in EMERGENCE["networks"]
            and set(row["networks"].split()) & set(EMERGENCE["networks"][row["study"]])
            and int(row["depth"]) in emergence_depths(row["vocabulary"], row["study"])
        )
    )


def emergence_sinks(*shown):
    """The attention sinks of the shallow networks of those studies that figures show the sinks of."""
    return emergence_shallow("sinks.parquet", *(pair for pair in shown if pair in OF_SINKS.values()))


def evidence_emergence(file, studies=EVIDENCE["emergence"]):
    """A file of each study that is kept."""
    return [f"results/emergence/{study}/{file}" for study in studies]
