"""What a machine may lack: a test that needs it is skipped there, and fails where REQUIRE names it.

REQUIRE=slurm,chromium make test-all
"""

import os

import pytest

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
