"""The released lambda and content of each model on each data set, read alike from tables and from configurations.

`base` is the mean content logit of a token on earlier ones, `diagonal` what its logit on itself has more: queries
times keys as they are, without the softmax's 1/sqrt(head_dim). The authors keep them in float32, lambda in float64.
"""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import ArrayLike

from position_bias.released import sources
from position_bias.released.models import DATASETS, MODELS, ReleasedModel
from position_card.core import artifacts
from position_card.rollout.attention import Array

Schedules = dict[tuple[str, str], "Schedule"]  # by model and data set

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same, ten times faster


@dataclass(frozen=True)
class Schedule:
    """What was measured of one model on one data set, first layer first, all float64."""

    mixing: Array  # lambda [L], the per-token estimator of the paper's first version
    base: Array  # [L, H], float32 values
    diagonal: Array  # [L, H], float32 values


def read(source: str | None, sha256: str | None = None) -> Schedules:
    """Schedules of every model on every data set.

    Raises InputError where the source cannot be had (`source.read`), lacks a column, key or model, has another number
    of layers or heads than the model, or holds what is no finite number.
    """
    return from_contents(source, sources.read(source, sha256))


def from_contents(source: str | None, contents: sources.Contents) -> Schedules:
    """The schedules in what was read of a source. Raises InputError as `read` does."""
    try:
        return _from_tables(contents) if sources.is_tidy(contents) else _from_configurations(contents)
    except (ValueError, yaml.YAMLError, OSError, EOFError) as error:  # a cut .gz file is an EOFError
        raise sources.fault(source, f"is not usable: {error}") from error


def read_schedule(mixing: str | Path, content: str | Path) -> Schedule:
    """Read a schedule from the two tables that the workflow writes of it, whose rows are in order.

    Raises InputError where one cannot be read.
    """
    layers = artifacts.read_table(mixing, ["layer", "lambda"])["lambda"].to_numpy(float)
    heads = artifacts.read_table(content, ["layer", "head", "base", "diagonal"])
    base, diagonal = (heads[name].to_numpy(float).reshape(len(layers), -1) for name in ("base", "diagonal"))
    return Schedule(layers, base, diagonal)


def _from_tables(contents: Mapping[str, bytes]) -> Schedules:
    sizes = _table(contents, "models.csv", ["model"], ["layers", "heads", "head_dim"])
    _check_sizes(sizes)
    mixing = _table(contents, "lambda.csv", ["model", "dataset"], ["layer", "lambda"])
    content = _table(contents, "content.csv.gz", ["model", "dataset"], ["layer", "head", "base", "diagonal"])
    schedules = {}
    for name, dataset, model in _models_and_datasets():
        place = f"{name} on {dataset}"
        of_mixing, of_content = (
            table[(table["model"] == name) & (table["dataset"] == dataset)] for table in (mixing, content)
        )
        layers = _arranged(of_mixing, ["layer"], (model.layers,), f"lambda.csv, {place}")
        heads = _arranged(of_content, ["layer", "head"], (model.layers, model.heads), f"content.csv.gz, {place}")
        base, diagonal = (heads[name].to_numpy().reshape(model.layers, model.heads) for name in ("base", "diagonal"))
        schedules[name, dataset] = _checked(place, model, layers["lambda"], base, diagonal)
    return schedules


def _table(contents: Mapping[str, bytes], name: str, words: list[str], numbers: list[str]) -> pd.DataFrame:
    table = pd.read_csv(io.BytesIO(contents[name]), compression="gzip" if name.endswith(".gz") else None)
    if absent := [column for column in (*words, *numbers) if column not in table]:
        raise ValueError(f"{name} lacks column {', '.join(absent)}")
    for column in numbers:
        if (wrong := pd.to_numeric(table[column], errors="coerce").isna()).any():
            raise ValueError(f"{name} holds {table.loc[wrong, column].iloc[0]} in column {column}, which is no number")
    return table


def _check_sizes(sizes: pd.DataFrame) -> None:
    if sizes["model"].duplicated().any() or not set(MODELS) <= set(sizes["model"]):
        raise ValueError(f"models.csv names a model twice or lacks one of {', '.join(MODELS)}")
    for key in ("layers", "heads", "head_dim"):
        by_model = dict(zip(sizes["model"], sizes[key], strict=True))
        for name, model in MODELS.items():
            if by_model[name] != getattr(model, key):
                raise ValueError(f"models.csv says {key} = {by_model[name]} of {name}, not {getattr(model, key)}")


def _arranged(table: pd.DataFrame, keys: list[str], shape: tuple[int, ...], place: str) -> pd.DataFrame:
    """Rows in the order of `keys`, which must count every index of `shape` once."""
    table = table.sort_values(keys)
    indices = np.indices(shape).reshape(len(shape), -1).T
    if len(table) != len(indices) or (table[keys].to_numpy() != indices).any():
        counts = ", ".join(f"{count} {key}s" for key, count in zip(keys, table[keys].nunique(), strict=True))
        right_counts = ", ".join(f"{count} {key}s" for key, count in zip(keys, shape, strict=True))
        raise ValueError(
            f"{place} has {len(table)} rows of {counts}, not {len(indices)} of {right_counts} counted from 0"
        )
    return table


def _from_configurations(contents: Mapping[str, bytes]) -> Schedules:
    schedules = {}
    for name, dataset, model in _models_and_datasets():
        path = f"{sources.CONFIGURATIONS}/all_content/{dataset}/{model.configured_as}.yaml"
        if path not in contents:
            raise ValueError(f"{path} is missing")
        config = yaml.load(contents[path], _Loader)
        _check_rollout(path, config, model)
        schedules[name, dataset] = _checked(
            path,
            model,
            _entry(path, config, "lambda_schedule_config", "lambdas_custom"),
            _entry(path, config, "content_config", "base_scores"),
            _entry(path, config, "content_config", "diagonal_scores"),
        )
    return schedules


def _check_rollout(path: str, config: Any, model: ReleasedModel) -> None:
    """What is taken for granted: sizes, and a causal rollout of uniform heads with the released slopes."""
    for keys, right_value in {
        ("num_layers",): model.layers,
        ("attention_config", "num_heads"): model.heads,
        ("attention_config", "head_weights"): None,
        ("attention_config", "softmax_temperature"): 1,
        ("mask_config", "mask_type"): "causal",
        ("lambda_schedule_config", "schedule_type"): "custom",
    }.items():
        if (configured_value := _entry(path, config, *keys)) != right_value:
            raise ValueError(f"{path} has {'.'.join(keys)} = {configured_value!r}, not {right_value!r}")
    slopes = np.asarray(_entry(path, config, "attention_config", "alibi_slopes"), np.float64).ravel()
    if slopes.shape != (model.heads,) or not np.allclose(slopes, released_slopes(model.heads), rtol=1e-12, atol=0):
        raise ValueError(f"{path} has other attention_config.alibi_slopes than 2^(-8 h/{model.heads})")


def _entry(path: str, config: Any, *keys: str) -> Any:
    for depth, key in enumerate(keys, start=1):
        if not isinstance(config, Mapping) or key not in config:
            raise ValueError(f"{path} lacks {'.'.join(keys[:depth])}")
        config = config[key]
    return config


def released_slopes(heads: int) -> Array:
    """Return the ALiBi slopes of the authors' configurations [heads]: 2^(-8 h/H) for every H, a power of two or not."""
    return 2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)


def _models_and_datasets() -> Iterator[tuple[str, str, ReleasedModel]]:
    for name, model in MODELS.items():
        for dataset in DATASETS:
            yield name, dataset, model


def _checked(place: str, model: ReleasedModel, mixing: ArrayLike, base: ArrayLike, diagonal: ArrayLike) -> Schedule:
    """A schedule of the model's size, of finite numbers, every lambda within [0, 1]."""
    try:
        mixing = np.asarray(mixing, np.float64)
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is named below
            contents = [
                np.asarray(scores, np.float64).astype(np.float32).astype(np.float64) for scores in (base, diagonal)
            ]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place} holds rows of unequal length or what is no number ({error})") from error
    for quantity, values, shape in (
        ("lambda", mixing, (model.layers,)),
        ("base", contents[0], (model.layers, model.heads)),
        ("diagonal", contents[1], (model.layers, model.heads)),
    ):
        if values.shape != shape:
            right_shape = f"{model.layers} layers" + (f" of {model.heads} heads" if len(shape) == 2 else "")
            raise ValueError(f"{place} has {quantity} of shape {values.shape}, not {shape}: {right_shape}")
        if (wrong := ~np.isfinite(values)).any():
            raise ValueError(f"{place} has {quantity} = {values[wrong][0]}, which is no finite number")
    if (wrong := (mixing < 0) | (mixing > 1)).any():
        raise ValueError(f"{place} has lambda = {mixing[wrong][0]}, outside [0, 1]")
    return Schedule(mixing, *contents)
