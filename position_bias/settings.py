"""The whole configuration: what all wings share, then a section for each. Every call of the workflow reads it.

A configuration is read by its sections, never handed on whole. tools/reference.py writes its page.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml

from position_bias.emergence import settings as emergence_settings
from position_bias.language_models import settings as language_models_settings
from position_bias.layernorm import settings as layernorm_settings
from position_bias.postnorm import settings as postnorm_settings
from position_bias.released import settings as released_settings
from position_bias.structural.settings import Rollout, Structural
from position_bias.workflow import configuration
from position_bias.workflow.section import Bounds, Count, Items, Keys, Name, Seed, Small, Words, section

ROOT = Path(__file__).parents[1]

Device = Literal["auto", "cpu", "cuda"]
Names = Annotated[list[Name], Items()]


DEVICES = {
    "training": "training language models",
    "measure": "measuring language models, those of the hub too",
    "emergence": "training the networks of emergence",
    "layernorm": "training the decoders of layernorm",
    "postnorm": "training the networks of postnorm",
}


@section
class CheckpointEvery:
    """A job saves a checkpoint, to resume from, after so much work.

    A change affects no result and reruns nothing.
    """

    training: Annotated[Count, "steps of a language model"]
    measure: Annotated[Count, "prompts of a measurement"]
    emergence: Annotated[Count, "iterations of the networks of a study"]
    layernorm: Annotated[Count, "iterations of the decoders of a norm"]
    postnorm: Annotated[Count, "iterations of the networks of a task"]


@section
class Minutes:
    """Time limits of jobs on a cluster. A job that is cut off resumes, so a change reruns nothing."""

    train: Annotated[Small, "training a language model"]
    measure: Annotated[Small, "measuring a language model that was trained here on one data set"]
    emergence: Annotated[Small, "training the networks of a study at one depth"]
    layernorm: Annotated[Small, "training the decoders of a norm"]
    postnorm: Annotated[Small, "training the networks of a task"]
    simulation: Annotated[Small, "a simulation of layernorm, which cannot resume"]


@section
class Figures:
    """How all figures are drawn. A change draws them again, and nothing else."""

    width: Annotated[Annotated[float, Bounds(3, 6.8)] | None, "inches of the widest figures; null: a page, 6.8"]
    transparent: Annotated[bool, Bounds(), "without a white ground, for slides"]


@section
class Evidence:
    """The parts of a long run that are kept as tables."""

    group: Annotated[Name | None, "name of the run"]
    emergence: Annotated[
        list[
            Annotated[
                str,
                Words(
                    "^(gaussian|fixed|isotropic)/[a-z-]+/depth[1-9][0-9]{0,2}$",
                    "VOCABULARY/STUDY/depthLAYERS, as in gaussian/plain/depth2",
                ),
            ]
        ],
        Items(),
        "studies, each VOCABULARY/STUDY/depthLAYERS",
    ]
    postnorm: Annotated[Names, "tasks, or averaging"]
    structural: Annotated[Names, "models trained here"]
    pretrained: Annotated[Names, "models of structural.pretrained: both ends by two measures, and what they recall"]
    curve: Annotated[Names, "models of structural.pretrained: what changes as text moves towards another, and recall"]
    recall: Annotated[Names, "models of structural.pretrained: what they recall, alone"]
    initialization: Annotated[Names, "the same models: influence in their copies by deviation and depth"]
    sink: Annotated[Names, "models of structural.sink: three measures with the first token's own norm and another"]


@section
class Settings:
    """Every key of config.yaml."""

    scale: Annotated[
        Literal["default", "longer", "paper", "test"],
        "how long this run trains, told beside every verdict; longer is between default and paper",
    ]
    device: Annotated[Device, "where models run; auto takes a GPU if one is visible to the job"]
    devices: Annotated[
        dict[str, Device],
        Keys(DEVICES, required=False),
        "the device of single stages, in place of `device`; a change reruns nothing",
    ]
    seed: Annotated[Seed, "seed of sampled prompts and bootstraps"]
    checkpoint_every: CheckpointEvery
    minutes: Minutes
    figures: Figures
    datasets: language_models_settings.Datasets
    hub_datasets: language_models_settings.HubDatasets
    primary_dataset: language_models_settings.PrimaryDataset
    lengths: language_models_settings.Lengths
    tokenizer: language_models_settings.Tokenizer
    training: language_models_settings.TrainingSettings
    models: language_models_settings.Models
    hub_models: language_models_settings.HubModels
    measure: language_models_settings.Measure
    structural: Structural
    rollout: Rollout
    released: released_settings.Released
    evidence: Evidence
    emergence: emergence_settings.Emergence
    layernorm: layernorm_settings.LayerNorm
    postnorm: postnorm_settings.PostNorm


FAULTS = (  # what single sections do not show
    language_models_settings.faults,
    emergence_settings.faults,
    postnorm_settings.faults,
)


def training_lengths(config: Mapping[str, Any]) -> dict[str, str]:
    """For how long the networks of each paper train, in words, by its name in the configuration."""
    postnorm_parts = ("set_complement", "languages", "averaging", "stability")
    iterations = {
        "emergence": config["emergence"]["training"]["iterations"].values(),
        "layernorm": [config["layernorm"]["trained"]["iterations"]],
        "postnorm": [config["postnorm"][part]["iterations"] for part in postnorm_parts],
    }
    spans = {paper: sorted({min(counts), max(counts)}) for paper, counts in iterations.items()}
    texts = {paper: "-".join(f"{number:,}" for number in span) for paper, span in spans.items()}
    return {"structural": f"{config['training']['steps']:,} steps"} | {
        paper: f"{numbers} iterations" for paper, numbers in texts.items()
    }


def default() -> dict[str, Any]:
    """What config.yaml says."""
    config: dict[str, Any] = yaml.load(
        (ROOT / "config.yaml").read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return config


def check(config: dict[str, Any]) -> None:
    """Put `config` into the order of config.yaml, in place; raises InputError with one line for its first fault."""
    configuration.put_in_order(config, default())
    configuration.check(config, Settings, FAULTS)
