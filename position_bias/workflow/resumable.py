"""Some jobs are long enough to be killed: each goes on from what an earlier process of the same job has kept."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from position_card.core import devices, runtime
from position_card.core.checkpoint import Place

MEASURING = "measure"  # the kind of jobs that train nothing: what oneDNN rounds otherwise stays in the last digits


@contextmanager
def job(of_rule: Any, kind: str, *path: str, stage: str | None = None, gpus: int = 1) -> Iterator[Place]:
    """Run a job of Snakemake that runs models as `runtime.job` does, on its device, with a place to go on from.

    It reads from the configuration only what changes no result: the device of `stage`, or of `kind` where no stage is
    named, and the entry `kind` of `checkpoint_every`. The folder of the place is checkpoints/`kind`/`path`. The folder
    is removed when the job has ended well; a job that fails or is killed leaves it.
    """
    folder, config = Path("checkpoints", kind, *path), of_rule.config
    device_name = devices.device_request(config, stage or kind)
    with runtime.job(of_rule.log[0]), devices.device(device_name, gpus, of_rule.resources.gpu) as device:
        runtime.keep_freed_memory()
        if kind == MEASURING and devices.multiply_by_onednn():
            runtime.log.info("products of float32 are by oneDNN")
        yield Place(folder, config["checkpoint_every"][kind], device)
        if folder.exists():
            shutil.rmtree(folder)
