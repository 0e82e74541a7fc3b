"""What of models and texts the configuration may not ask for, each fault once and in one line."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from position_bias.language_models.settings import faults, is_directory

ROOT = Path(__file__).parents[3]
DEFAULT = yaml.safe_load((ROOT / "config.yaml").read_text())
REVISION = "a" * 40
ROTARY = {
    "source": "owner/model",
    "revision": REVISION,
    "family": "llama",
    "positions": "own",
    "gpus": 1,
    "memory": 8,
    "minutes": 60,
}
BLOOM = {**ROTARY, "family": "bloom"}
TEXT = {
    "source": "owner/text",
    "revision": REVISION,
    "subset": None,
    "split": "train",
    "column": "text",
    "documents": 9,
}


def found(change):
    config = deepcopy(DEFAULT)
    update_config(config, change)
    return list(faults(config))


def test_the_default_has_none_nor_have_models_and_texts_of_the_hub():
    assert found({}) == []
    added = {"hub_models": {"rotary": {**ROTARY, "positions": "none"}, "big": BLOOM}, "hub_datasets": {"web": TEXT}}
    used = {"measure": {"models": ["big"], "datasets": ["web"]}, "primary_dataset": "web"}
    used |= {"structural": {"fig1": ["big", "mpt"]}}
    assert found(added | used | {"layernorm": {"pretrained": ["rotary", "big", "bloom"]}}) == []
    lengths = {"more": [{"tokens": 1024, "prompts": 4}, {"tokens": 100, "prompts": 4}]}
    local = {"big": {**BLOOM, "source": "./model", "revision": None}}
    assert found({"hub_models": local, "lengths": lengths}) == []
    assert found({"evidence": {"structural": ["bloom", "falcon"]}}) == []


def test_what_is_shipped_has_none(shipped):
    assert list(faults(shipped)) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"tokenizer": {"datasets": ["web"]}}, "tokenizer.datasets = 'web' is not in datasets; use one of standard-"),
        ({"training": {"datasets": ["web"]}}, "training.datasets = 'web' is not in datasets; use one of standard-"),
        (
            {"hub_datasets": {"web": TEXT}, "training": {"datasets": ["web"]}},  # it has no training documents
            "training.datasets = 'web' is not in datasets; use one of standard-library",
        ),
        (
            {"hub_datasets": {"web": TEXT}, "measure": {"datasets": ["standard-library", "wob"]}},
            "measure.datasets = 'wob' is not in datasets or hub_datasets; use one of standard-library, language-"
            "reference, scientific-packages, web",
        ),
        (
            {"hub_datasets": {"web": TEXT}, "primary_dataset": "web"},
            "primary_dataset = 'web' is not in measure.datasets; use one of standard-library",
        ),
        (
            {"hub_models": {"big": BLOOM}, "measure": {"models": ["bloom", "mpt", "bog"]}},
            "measure.models = 'bog' is not in models or hub_models; use one of bloom, mpt, falcon, big",
        ),
        (
            {"structural": {"fig1": ["bloom", "big"]}},
            "structural.fig1 = 'big' is not in models or hub_models; use one of bloom, mpt, falcon",
        ),
        (
            {"lengths": {"heatmap": {"tokens": 300}}},
            "lengths.heatmap.tokens = 300 is more than measure.matrices_up_to = 256, so that no matrices of content "
            "and attention would be kept; give at most 256, or raise that",
        ),
        (
            {"layernorm": {"pretrained": ["llama"]}},
            "layernorm.pretrained = 'llama' is not in models or hub_models; use one of bloom, mpt, falcon",
        ),
        (
            {"evidence": {"structural": ["bloom", "llama"]}},
            "evidence.structural = 'llama' is not in models; use one of bloom, mpt, falcon",
        ),
        (
            {"hub_models": {"big": BLOOM}, "evidence": {"structural": ["big"]}},  # it is not trained here
            "evidence.structural = 'big' is not in models; use one of bloom, mpt, falcon",
        ),
        ({"hub_models": {"bloom": BLOOM}}, "hub_models.bloom has the name of models.bloom; give it another"),
        (
            {"hub_datasets": {"standard-library": TEXT}},
            "hub_datasets.standard-library has the name of datasets.standard-library; give it another",
        ),
        (
            {"hub_models": {"big": {**BLOOM, "source": "/models/big"}}},
            f"hub_models.big.revision = '{REVISION}', but its source is a directory; set it to null",
        ),
        (
            {"hub_models": {"big": {**BLOOM, "revision": None}}},
            "hub_models.big.revision = None leaves the hub's 'owner/model' unpinned; name a commit",
        ),
        (
            {"hub_datasets": {"web": {**TEXT, "source": "../text"}}},
            f"hub_datasets.web.revision = '{REVISION}', but its source is a directory; set it to null",
        ),
        (
            {"hub_datasets": {"web": {**TEXT, "revision": None}}},
            "hub_datasets.web.revision = None leaves the hub's 'owner/text' unpinned; name a commit",
        ),
        (
            {"hub_models": {"big": {**BLOOM, "source": "~/models/big"}}},
            "hub_models.big.source = '~/models/big' is no id of the hub; a directory starts with / or a dot",
        ),
        (
            {"hub_models": {"rotary": ROTARY}, "measure": {"models": ["bloom", "mpt", "rotary"]}},
            "measure.models = 'rotary' is of family llama, which has no ALiBi: rollouts (a) to (c) do not apply to it; "
            "name it in layernorm.pretrained alone, or ask for its card",
        ),
        (
            {"evidence": {"rotary": ["bloom"]}},
            "evidence.rotary = 'bloom' is of family bloom, which has ALiBi and no rotary positions; name it in "
            "evidence.structural",
        ),
        (
            {"hub_models": {"big": {**BLOOM, "positions": "none"}}},
            "hub_models.big.positions = 'none', but ALiBi cannot be turned off; set it to own",
        ),
        (
            {"lengths": {"long": {"tokens": 256}}},
            "lengths.long.tokens = 256 is that of lengths.standard too; give each its own",
        ),
        (
            {"lengths": {"more": [{"tokens": 1024, "prompts": 4}, {"tokens": 64, "prompts": 9}]}},
            "lengths.more.1.tokens = 64 is that of lengths.heatmap too; give each its own",
        ),
        (
            {"lengths": {"more": [{"tokens": 1024, "prompts": 4}, {"tokens": 1024, "prompts": 9}]}},
            "lengths.more.1.tokens = 1024 is that of lengths.more.0 too; give each its own",
        ),
        (
            {"lengths": {"long": {"tokens": 2049}}},
            "lengths.long.tokens = 2049 is more than models.mpt (mpt) takes; give at most 2048",
        ),
        (
            {"lengths": {"more": [{"tokens": 4096, "prompts": 2}]}},
            "lengths.more.0.tokens = 4096 is more than models.mpt (mpt) takes; give at most 2048",
        ),
        (
            {"training": {"warmup": 300}},
            "training.warmup = 300 leaves no step after it; set it below training.steps = 300",
        ),
        (
            {"training": {"snapshots": [0, 301]}},
            "training.snapshots = 301 is never reached; use steps up to training.steps = 300",
        ),
        ({"models": {"mpt": {"architecture": {"heads": 7}}}}, "models.mpt.architecture.hidden = 64"),
    ],
)
def test_every_fault_is_said_once(change, fault):
    lines = found(change)
    assert len(lines) == 1, lines
    assert lines[0].startswith(fault)
    assert "\n" not in lines[0]


def test_where_larger_matrices_are_kept_prompts_that_need_them_may_be_longer():
    assert found({"lengths": {"standard": {"tokens": 300}}, "measure": {"matrices_up_to": 300}}) == []


def test_a_longer_training_context_makes_room_for_longer_prompts():
    assert found({"lengths": {"long": {"tokens": 4096}}, "training": {"context": 4096}}) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("/models/bloom", True),
        ("./bloom", True),
        ("../bloom", True),
        (".", True),
        ("bigscience/bloom", False),
        ("gpt2", False),
    ],
)
def test_a_directory_starts_with_a_slash_or_a_dot(source, expected):
    assert is_directory(source) == expected


def test_a_directory_with_the_form_of_a_hub_id_is_told_how_it_must_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert found({"hub_models": {"big": BLOOM}}) == []
    (tmp_path / BLOOM["source"]).mkdir(parents=True)
    assert found({"hub_models": {"big": BLOOM}}) == [
        "hub_models.big.source = 'owner/model' is no id of the hub; a directory starts with / or a dot"
    ]
