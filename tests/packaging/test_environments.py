"""Every conda environment is enough for the scripts of its rules, and holds nothing that they do not ask for. What the
library declares for pip is enough, too.

Nothing is installed for this: the distributions of an environment, with what they depend on, are linked into a folder
that stands in for its site-packages, and a Python that sees no other folder runs every import of the scripts.
"""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import threading
import tomllib
import zipfile
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from position_bias.workflow.definitions import PACKAGES as LIBRARIES
from position_bias.workflow.definitions import Library
from position_card.texts.corpus import PACKAGES
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
    reached = {module for rule in rules for module, _ in LIBRARY.reached(rule.script, rule.functions)}
    return sorted({ROOT / rule.script for rule in rules} | {LIBRARY.file(module) for module in reached})


def import_statements(environment):
    """Every import in the sources, those within functions included: statement -> the top-level modules it names."""
    found = {}
    for source in sources(environment):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                found[ast.unparse(node)] = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found[ast.unparse(node)] = {node.module.partition(".")[0]}
    return found


def needed(environment):
    """What the sources import, what formats and options ask for behind our back, and packages whose texts are read."""
    distributions = importlib.metadata.packages_distributions()
    modules = set().union(*import_statements(environment).values()) - set(LIBRARIES) - sys.stdlib_module_names
    names = {canonicalize_name(distributions[module][0]) for module in modules}
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


def run_imports(statements, names, folder, library=ROOT):
    """Run imports in a Python that sees these distributions and the library alone."""
    folder.mkdir()
    for name in with_dependencies(names):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files} - {".."}:  # commands are in ../../../bin
            if not (folder / top).exists():
                (folder / top).symlink_to(distribution.locate_file(top))
    paths = f"import sys; sys.path[:0] = [{str(library)!r}, {str(folder)!r}]"
    program = "\n".join([paths, *statements])
    return subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_declares_what_its_scripts_need(environment):
    assert declared(environment) == needed(environment)


@pytest.mark.all("a process for each environment imports all that its scripts do")
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_imports_work_with_what_the_environment_declares(environment, tmp_path):
    ended = run_imports(import_statements(environment), declared(environment), tmp_path / "site-packages")
    assert ended.returncode == 0, ended.stderr


def asked(project):
    """The distributions that a pyproject.toml requires."""
    listed = tomllib.loads((ROOT / project).read_text())["project"]["dependencies"]
    return {canonicalize_name(Requirement(line).name) for line in listed}


def test_the_library_does_not_require_what_the_workflow_needs():
    assert not asked("pyproject.toml") & asked("launcher/pyproject.toml")
    assert not {name for name in with_dependencies(asked("pyproject.toml")) if name.startswith("snakemake")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the library, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (path,) = folder.iterdir()
    return path


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        commands = [opened.read(name).decode() for name in names if name.endswith("/entry_points.txt")]
    folders = {name.split("/")[0] for name in names}
    assert {re.sub(r"-.*\.", ".", folder) for folder in folders} == {"position_card", "position_card.dist-info"}
    assert wheel.stat().st_size < 600_000
    assert re.findall(r"^(\S+) =", "".join(commands), re.MULTILINE) == ["position-card"]


@pytest.mark.all("the wheel is built and all its modules are imported")
def test_the_card_is_imported_where_the_workflow_is_not_there(wheel, tmp_path):
    """Nothing but what the wheel requires can be seen: no Snakemake, seaborn or datasets."""
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "library")
    modules = sorted(path.stem for path in (tmp_path / "library/position_card/card").glob("[!_]*.py"))
    assert "command" in modules
    imports = [f"import position_card.card.{module}" for module in modules]
    ended = run_imports(imports, asked("pyproject.toml"), tmp_path / "site-packages", tmp_path / "library")
    assert ended.returncode == 0, ended.stderr
    names = asked("pyproject.toml") - {"torch", "accelerate"}
    assert run_imports(imports, names, tmp_path / "without", tmp_path / "library").returncode == 1


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
    shown = ["from position_card.card.command import main", "main(['--version'])"]
    ended = run_imports(shown, asked("pyproject.toml"), tmp_path / "site-packages", tmp_path / "library")
    assert (ended.returncode, ended.stdout) == (0, f"position-card {version}\n"), ended.stderr
