"""Some jobs are long enough to be killed: each goes on from what an earlier process of the same job has kept."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from position_bias.running import devices, runtime
from position_bias.running.checkpoint import Place


@contextmanager
def job(
    log_file: str | Path,
    config: Mapping[str, Any],
    threads: int,
    kind: str,
    *path: str,
    stage: str | None = None,
    gpus: int = 1,
    granted: int | None = None,
    narrow: bool = False,
) -> Iterator[Place]:
    """Run one job as `runtime.job` does, computing as `devices.computing` says, with a place to go on from.

    It reads from `config` only what changes no result: the device of `stage`, or of `kind` where no stage is named, and
    the entry `kind` of `checkpoint_every`. The folder of the place is checkpoints/`kind`/`path`. The folder is removed
    when the job has ended well; a job that fails or is killed leaves it.
    """
    folder = Path("checkpoints", kind, *path)
    requested = devices.requested(config, stage or kind)
    with (
        runtime.job(log_file),
        devices.computing(requested, threads, gpus, granted, narrow=narrow) as device,
    ):
        yield Place(folder, config["checkpoint_every"][kind], device)
        if folder.exists():
            shutil.rmtree(folder)
