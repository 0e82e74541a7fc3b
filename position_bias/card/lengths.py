"""What was measured of a decoder for its card: a file for each length, with facts that are the same in all of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from position_bias.rollout import measurement
from position_bias.rollout.measurement import Measurement
from position_bias.running import artifacts
from position_bias.running.runtime import whole_directory


def write(directory: str | Path, lengths: Mapping[int, Measurement], **facts: object) -> None:
    """Write what was measured at every length, and `facts` for JSON."""
    with whole_directory(directory) as partial:
        for n, measured in lengths.items():
            measurement.write(partial / f"n{n}.safetensors", measured, facts=facts)


def read(directory: Path) -> tuple[dict[int, Measurement], dict[str, Any]]:
    """Read what `write` wrote, from the shortest length on, and the facts. Raises InputError as `measurement.read`."""
    files = sorted(directory.glob("*.safetensors"), key=lambda file: int(file.stem.removeprefix("n")))
    lengths = {found.n: found for found in map(measurement.read, files)}
    facts: dict[str, Any] = artifacts.read_labels(files[-1])["facts"]
    return lengths, facts
