"""The two toy graphs that tests build: what each is configured to be, and how many jobs of each rule it has.

Both have config/test.yaml. The whole graph has all that the default run has. The small one has every kind of job once,
as far as the scorecard and the figures allow: one model, one data set, one study and one task of each kind.
"""

from pathlib import Path

from position_bias.verdicts.registry import every_addition, every_claim

ROOT = Path(__file__).parents[1]
CLAIMS = every_claim(ROOT / "published/claims.csv") + every_addition(ROOT / "published/additions.csv")
PAGES = 2  # of the scorecard: its tables and its figure

SMALL = {  # keys of the configuration whose values it has in place of those of config/test.yaml
    "tokenizer.datasets": ["standard-library"],
    "training.datasets": ["standard-library"],
    "measure.models": ["bloom"],
    "measure.datasets": ["standard-library"],
    "structural.fig1": ["bloom"],
    "emergence.depths": {
        "gaussian": {"plain": [2], "residual": [2]},
        "fixed": {"plain": [], "residual": []},
        "isotropic": {"plain": []},
    },
    **{
        f"emergence.networks.{study}": []
        for study in (
            *("first", "middle", "last", "window", "prefix", "residual-window", "residual-prefix"),
            *("pre-norm", "post-norm"),
        )
    },
    "layernorm.pretrained": ["bloom"],
    "postnorm.set_complement.lengths": {"set-complement-16": 5},
    "postnorm.set_complement.learning_rate": {
        "set-complement-16": {
            "none": 0.03,
            "pre": 0.03,
            "pre-final": 0.01,
            "post": 0.03,
            "peri": 0.01,
            "peri-init": 0.01,
        }
    },
    "postnorm.languages.lengths": {"maximum-10": 10},
    "postnorm.sweep.languages": ["maximum-10"],
}
NOT_SMALL = (  # claims on networks that neither the small graph trains, nor evidence has
    "emergence-figure-6-encodings",
    "emergence-figure-9",
    "emergence-figure-10",
    "emergence-figure-11-encodings",
    "layernorm-retrieval",
    "postnorm-classification",
)

FIGURES = {  # of the whole graph
    "structural": "fig1 fig2 fig3 fig4 fig5 big_models big_models_mixing distances forces dichotomy training "
    "long_training three_measures curve recall initialization decoders_ends decoders_rollouts other_models",
    "emergence": "fig1 fig2 fig3 fig4 fig5 fig6a fig6b fig6c fig7 fig8a fig8b fig8c fig8a_residual fig8b_residual "
    "fig8c_residual fig9 fig10 fig11a fig11b fig11c fig11d fig12 fig13a fig13b fig13c learning_curves long_training "
    "windows released_code theorems",
    "layernorm": "scores closed_form anisotropy depth moments random_weights trained pretrained emergence",
    "postnorm": "set_complement resharpening construction dimension bema formal_languages stability",
}
ABSENT = {  # of those, what the small one does not draw
    "structural": "fig2",
    "emergence": "fig6a fig6b fig6c fig8b fig8c fig8b_residual fig8c_residual fig9 fig10 fig11b fig11c fig11d fig12 "
    "fig13a fig13b fig13c windows",
}


def drawn(small):
    """The figures of a graph by paper."""
    absent = ABSENT if small else {}
    return {
        paper: [name for name in names.split() if name not in absent.get(paper, "").split()]
        for paper, names in FIGURES.items()
    }


def only(*rules):
    return dict.fromkeys(rules, 1)


def draws(paper, names):
    """One job for each of the figures."""
    return only(*(f"{paper}_draw_{name}" for name in names))


def counted(small):
    """How many jobs of each rule a graph has, without those of the scorecard and of provenance."""
    models, datasets = (1, 1) if small else (3, 2)
    figures = {}
    for paper, names in drawn(small).items():
        figures |= draws(paper, names)
    return {
        "corpus": datasets,
        "tokenizer": 1,
        "prompts": datasets * LENGTHS,
        "train": models,
        "measure": models * datasets,
        "measure_snapshot": models,
        **only("hub_model", "measure_pretrained", "structural_pretrained", "measure_recall", "structural_recall"),
        "measure_copy": COPIES,
        **only("measure_curve", "measure_curve_of_copy", "structural_curve_values"),
        **only("measure_initialization", "structural_initialization", "measure_sink", "structural_sink"),
        "rollout": models * (2 * datasets + 1),  # standard and long on every data set, and before training
        **only(
            *(f"structural_{name}" for name in ("propositions", "shift", "monotonicity", "licences", "checks", "curve"))
        ),
        **only(*(f"structural_table{number}" for number in range(1, 6)), "structural_spearman"),
        **only(*(f"structural_printed_table{number}" for number in range(1, 6)), "structural_big_models"),
        "emergence_train": 4 if small else 12 + 8 + 1 + NORMALISED,  # by vocabulary
        "emergence_attention": 2 if small else 9,
        **only("emergence_gaps", "emergence_checks", "emergence_theorems"),
        **only("layernorm_simulate", "layernorm_theory", "layernorm_random_weights", "layernorm_checks"),
        "layernorm_train": 4,
        "postnorm_train": 2 if small else 2 + 9,
        **only(*(f"postnorm_train_{kind}" for kind in ("widths", "depth", "averages", "stability"))),
        **only("postnorm_construct", "postnorm_checks"),
        **figures,
    }


LENGTHS = 3
COPIES = 2  # of the pretrained decoder: at its own deviation, and at that of the library
NORMALISED = 2  # studies of emergence that layernorm looks at
WHOLE_JOBS, SMALL_JOBS = counted(small=False), counted(small=True)
