"""What a configuration can ask of `emergence`. It imports no torch, since every call of the workflow reads it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from position_bias.emergence.studies import STUDIES, Network, study
from position_bias.emergence.task import for_vocabulary


def faults(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value of `emergence` that fits the schema, but not the rest of the configuration."""
    emergence = config["emergence"]
    try:
        tokens = for_vocabulary("gaussian", emergence["task"]).tokens
    except ValueError as error:
        yield f"emergence.task.{error}"
        return
    for name, networks in emergence["networks"].items():
        for one in study(name, networks).networks:
            yield from _network_faults(f"emergence.networks.{name}", STUDIES[name].masks, one, tokens)
    for key in ("sequences_along", "sequences"):
        if emergence["testing"][key] < emergence["task"]["items"]:
            count, items = emergence["testing"][key], emergence["task"]["items"]
            yield f"emergence.testing.{key} = {count} leaves positions without a test; give {items} or more"
    trained = [name for name, networks in emergence["networks"].items() if networks]
    for kept in config["evidence"]["emergence"]:
        if kept.split("/")[1] not in trained:
            yield f"evidence.emergence = {kept} is of no study that is trained; use one of {', '.join(trained)}"
    sinks = emergence["sinks"]
    if sinks["threshold"] not in sinks["thresholds"]:
        known = ", ".join(map(str, sinks["thresholds"]))
        yield f"emergence.sinks.threshold = {sinks['threshold']} is not one of emergence.sinks.thresholds: {known}"


def _network_faults(key: str, masks: Sequence[str], one: Network, tokens: int) -> Iterator[str]:
    found = f"{key} = {one.mask_name}/{one.encoding}"
    if one.mask not in masks:
        yield f"{found} has a mask that this study does not compare; use {' or '.join(masks)}"
    elif one.reach > tokens:
        yield f"{found} reaches over more than a sequence's tokens; give at most {tokens}"
