"""A made-up library of a few lines: each edit of its text changes the digest, or does not."""

import re
from pathlib import Path

import pytest

from position_bias.workflow.definitions import IMPORT, LEFT_OUT, Library
from tests.refusals import refused

ROOT = Path(__file__).parents[3]
SCRIPT = "scripts/draw.py"
FILES = {
    SCRIPT: """
        from position_card.core import runtime
        from position_bias.wing import figures

        with runtime.job("log"):
            figures.draw()
        """,
    "position_bias/__init__.py": '"""The library."""\n',
    "position_bias/wing/__init__.py": '"""A wing."""\nfrom position_bias.wing.theory import passed_on\n',
    "position_bias/wing/figures.py": '''
        """Figures."""

        import json
        from functools import cache as kept
        from math import floor

        import numpy as np

        import position_bias.wing.aliased as z
        import position_bias.wing.whole_path
        from position_bias import wing
        from position_card.core.runtime import InputError, announce, log
        from position_bias.wing import registry, theory
        from position_bias.wing.data import Data as Held, from_data
        from position_bias.wing.starred import *

        WIDTH = 3


        def draw(width=WIDTH):
            """Draw a figure."""
            data = Held(1)
            if width < 0:
                raise InputError(f"width {width} is below {_words(width)}; use another")  # a comment
            if width > 9:
                raise _refusal(width)
            log.info("drawn %d times", _times())
            announce(f"drawn {_counted()} times")
            found = [theory.law(data.measured()), wing.passed_on(2), z.aliased(), position_bias.wing.whole_path.found()]
            found += [named("wing.by_name:made"), registry.KNOWN["added"], getattr(registry, "constant"), starred()]
            found += [(lambda: np.mean(floor(from_data(1))))()]

            def nested() -> "Quoted":
                from position_bias.wing.within import within

                return within()

            return [*found, nested(), TABLE["of"], chosen(), attribute.value]


        def named(text):
            return text


        def _words(width):
            return "nothing at all"


        def _refusal(width):
            return InputError(f"width {width} " "is too large")


        def _times():
            return 1


        def _counted():
            return 2


        def _in_table():
            return "in the table"


        TABLE = {"of": _in_table}
        if WIDTH > 2:

            def chosen():
                return "one"

        else:

            def chosen():
                return "other"


        try:
            import attribute
        except ImportError:
            attribute = None


        class Quoted:
            """Named in quotes."""

            size = 4


        def unused(data):
            return "unused"
        ''',
    "position_bias/wing/theory.py": '''
        """Laws."""

        FACTOR = 2
        OFFSET = 1


        def law(value):
            """The law."""
            return FACTOR * value


        def passed_on(value):
            return value + OFFSET


        def unused():
            return 1
        ''',
    "position_bias/wing/data.py": '''
        """Data."""

        from dataclasses import dataclass, field


        class Base:
            """What data have in common."""

            def measured(self):
                return self._each()


        @dataclass(frozen=True)
        class Data(Base):
            """Data."""

            value: int
            others: list[str] = field(default_factory=list)

            def _each(self):
                return self.value + 1


        def from_data(value: Base = None) -> Base:
            return value
        ''',
    "position_bias/wing/registry.py": """
        KNOWN = {}
        constant = 5


        def register(function):
            KNOWN[function.__name__] = function
            return function
        """,
    "position_bias/wing/plugins.py": """
        from position_bias.wing.registry import KNOWN, register


        @register
        def added():
            return "added"


        def put():
            return "put"


        def joined():
            return "joined"


        KNOWN["put"] = put
        KNOWN |= {"joined": joined}
        registered = register(lambda: put)
        LONELY = 1
        """,
    "position_bias/wing/by_name.py": """
        def made():
            return "made"


        def unused():
            return "unused"
        """,
    "position_bias/wing/aliased.py": "import position_bias.wing.plugins\n\ndef aliased():\n    return 1\n",
    "position_bias/wing/whole_path.py": "def found():\n    return 'found'\n",
    "position_bias/wing/within.py": "def within():\n    return 'within'\n",
    "position_bias/wing/starred.py": "def starred():\n    return 'starred'\n",
    "position_bias/workflow/__init__.py": "",
    "position_card/core/runtime.py": '''
        """What surrounds a job."""

        import logging

        log = logging.getLogger("position_card")


        class InputError(ValueError):
            pass


        def announce(text):
            print(text)


        def job(path):
            return _opened(path)


        def _opened(path):
            return open(path)
        ''',
}


def written(root, **edits):
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(re.sub("^ {8}", "", text, flags=re.MULTILINE).lstrip("\n"))


def edit(root, name, old, new):
    path = root / name
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
    path.write_text(text.replace(old, new))


@pytest.fixture
def library(tmp_path):
    written(tmp_path)
    return tmp_path


FIGURES, THEORY, DATA = (f"position_bias/wing/{name}.py" for name in ("figures", "theory", "data"))
BY_NAME, PLUGINS = (f"position_bias/wing/{name}.py" for name in ("by_name", "plugins"))
RUNTIME = "position_card/core/runtime.py"
NO_CHANGE = {
    "a docstring": (THEORY, '"""The law."""', '"""The law,\n    told at length."""'),
    "a docstring that goes": (THEORY, '    """The law."""\n', ""),
    "a docstring of a class": (DATA, 'class Data(Base):\n    """Data."""', 'class Data(Base):\n    """More."""'),
    "a docstring of a module": (FIGURES, '"""Figures."""', '"""Every figure."""'),
    "a comment": (FIGURES, "# a comment", "# another"),
    "a place": (FIGURES, "WIDTH = 3\n", "\n\n\nWIDTH = 3\n"),
    "an order": (THEORY, "FACTOR = 2\nOFFSET = 1\n", "OFFSET = 1\nFACTOR = 2\n"),
    "brackets and a line": (THEORY, "return FACTOR * value", "return (\n        FACTOR * value\n    )"),
    "the words of an error": (FIGURES, "is below", "lies below"),
    "what words it alone": (FIGURES, '"nothing at all"', '"nothing"'),
    "its whole text": (FIGURES, 'f"width {width} is below {_words(width)}; use another"', '"too small" " a width"'),
    "an error that is handed on": (FIGURES, 'f"width {width} " "is too large"', '"too large"'),
    "a record of the log": (FIGURES, "drawn %d times", "%d"),
    "the words of an announcement": (FIGURES, 'f"drawn {_counted()} times"', 'f"{_counted()} times drawn"'),
    "a function that no one calls": (THEORY, "return 1", "return 2"),
    "a new function": (THEORY, "def unused", "def new():\n    return 7\n\n\ndef unused"),
    "a new import for it": (FIGURES, "import json", "import json\nimport position_bias.wing.by_name as other"),
    "a function beside one named in a string": (BY_NAME, '"unused"', '"never"'),
    "a constant beside what is registered": (PLUGINS, "LONELY = 1", "LONELY = 2"),
    "what opens the log": (RUNTIME, "open(path)", "open(path, 'a')"),
    "what announces": (RUNTIME, "print(text)", "print(text, flush=True)"),
    "the script": (SCRIPT, "figures.draw()", "figures.draw()  # a figure"),
}
CHANGE = {
    "a constant": (THEORY, "FACTOR = 2", "FACTOR = 3"),
    "arithmetic": (THEORY, "FACTOR * value", "FACTOR + value"),
    "a default argument": (FIGURES, "width=WIDTH", "width=4"),
    "the value of a default argument": (FIGURES, "WIDTH = 3", "WIDTH = 4"),
    "an argument of a message": (FIGURES, "def _times():\n    return 1", "def _times():\n    return 3"),
    "what an announcement calls": (FIGURES, "return 2", "return 3"),
    "a decorator": (DATA, "@dataclass(frozen=True)", "@dataclass"),
    "a base class": (DATA, "class Data(Base)", "class Data"),
    "a method of a base class": (DATA, "return self._each()", "return -self._each()"),
    "a method that another calls": (DATA, "self.value + 1", "self.value + 2"),
    "a field": (DATA, "value: int", "value: float"),
    "the default of a field": (DATA, "default_factory=list", "default_factory=tuple"),
    "the annotation of an argument": (DATA, "from_data(value: Base = None)", "from_data(value: Data = None)"),
    "an annotation in quotes": (FIGURES, "size = 4", "size = 5"),
    "a function passed on by a package": (THEORY, "value + OFFSET", "value - OFFSET"),
    "where it is passed on from": (
        "position_bias/wing/__init__.py",
        "wing.theory import passed_on",
        "wing.by_name import made as passed_on",
    ),
    "a function named in a string": (BY_NAME, '"made"', '"made anew"'),
    "an attribute found by its name": ("position_bias/wing/registry.py", "constant = 5", "constant = 6"),
    "a function in a dictionary": (FIGURES, "in the table", "in this table"),
    "a dictionary of functions": (FIGURES, '{"of": _in_table}', '{"of": _in_table, "or": _times}'),
    "a function under another name of its module": ("position_bias/wing/aliased.py", "return 1", "return 2"),
    "a function by its whole path": ("position_bias/wing/whole_path.py", "'found'", "'lost'"),
    "a function of a star": ("position_bias/wing/starred.py", "'starred'", "'stars'"),
    "a function imported within another": ("position_bias/wing/within.py", "'within'", "'beyond'"),
    "a nested function": (FIGURES, "return within()", "return -within()"),
    "a lambda": (FIGURES, "np.mean(floor", "np.sum(floor"),
    "what a name of another package means": (FIGURES, "from math import floor", "from math import ceil as floor"),
    "what a module of another package means": (FIGURES, "import numpy as np", "import numpy.ma as np"),
    "a condition of a definition": (FIGURES, "WIDTH > 2", "WIDTH > 1"),
    "a definition under a condition": (FIGURES, 'return "other"', 'return "the other"'),
    "what stands in for a missing package": (FIGURES, "attribute = None", "attribute = 0"),
    "a function that its decorator registers": (PLUGINS, '"added"', '"added again"'),
    "a function that an assignment registers": (PLUGINS, '"put"\n\n', '"put again"\n\n'),
    "a function that is joined to a registry": (PLUGINS, '"joined"\n\n\nKNOWN', '"joined again"\n\n\nKNOWN'),
    "a call that registers": (PLUGINS, "register(lambda: put)", "register(lambda: None)"),
    "a statement of a module": (PLUGINS, 'KNOWN["put"] = put', 'KNOWN["putting"] = put'),
    "a new statement of a module": (PLUGINS, "LONELY = 1", "LONELY = 1\nKNOWN.clear()"),
}


@pytest.mark.parametrize("edited", NO_CHANGE)
def test_what_decides_no_number_changes_no_digest(library, edited):
    before = Library(library).digest(SCRIPT)
    edit(library, *NO_CHANGE[edited])
    assert Library(library).digest(SCRIPT) == before


@pytest.mark.parametrize("edited", CHANGE)
def test_what_a_job_runs_changes_its_digest(library, edited):
    before = Library(library).digest(SCRIPT)
    edit(library, *CHANGE[edited])
    assert Library(library).digest(SCRIPT) != before


@pytest.mark.parametrize(
    ("unclear", "found"),
    [
        ("return globals()[value]", BY_NAME),
        ("return sys.modules[__name__]", BY_NAME),
        ("return vars(theory)[value]", THEORY),
        ("return [part for part in (theory, json)]", THEORY),
        ("return getattr(theory, value)", THEORY),
        ("return theory.made_as_it_runs(value)", THEORY),
        ("from position_bias.wing.theory import made_as_it_runs as it\n    return it", THEORY),
        ("return import_module('position_bias.wing.theory')", THEORY),
        ("return open('python -m').write('position_bias.wing.theory')", THEORY),
        ("return import_module(value)", THEORY),
        ("return importing.import_module(value)", THEORY),
        ("return importing.util.spec_from_file_location(value)", THEORY),
        ("return __import__(value)", THEORY),
        ("return eval(value)", THEORY),
    ],
)
def test_what_cannot_be_followed_counts_as_reached(library, unclear, found):
    """Each may find a function that nothing names."""
    imports = ["import importlib as importing", "from importlib import import_module"]
    imports.append("from position_bias.wing import theory")
    edit(
        library,
        BY_NAME,
        "def made():\n    return",
        "\n".join([*imports, "def made(value):", f"    {unclear}", "    return"]),
    )
    before = Library(library).digest(SCRIPT)
    edit(library, found, "def unused():\n    return", "def unused():\n    return not")
    assert Library(library).digest(SCRIPT) != before


def test_a_package_that_is_handed_on_counts_with_all_its_modules(library):
    edit(library, FIGURES, "def named(text):\n    return text", "def named(text):\n    return [wing]")
    before = Library(library).digest(SCRIPT)
    edit(library, BY_NAME, '"unused"', '"never"')
    assert Library(library).digest(SCRIPT) != before


@pytest.mark.parametrize("registered", ["class Also(Held):\n    pass", "class Also(metaclass=Held):\n    pass"])
def test_a_class_may_register_itself_with_base_or_metaclass(library, registered):
    path = library / "position_bias/wing/aliased.py"
    path.write_text(f"from position_bias.wing.data import Data as Held\n\n{registered}\n\n{path.read_text()}")
    before = Library(library).digest(SCRIPT)
    edit(library, "position_bias/wing/aliased.py", "    pass", "    number = 1")
    assert Library(library).digest(SCRIPT) != before


def test_the_functions_of_a_row_count(library):
    both = ("wing.by_name:made", "wing.by_name:unused")
    digests = {functions: Library(library).digest(SCRIPT, functions) for functions in (both[:1], both)}
    assert len(set(digests.values())) == 2
    edit(library, BY_NAME, '"unused"', '"never"')
    assert Library(library).digest(SCRIPT, both[:1]) == digests[both[:1]]
    assert Library(library).digest(SCRIPT, both) != digests[both]


def test_functions_that_name_one_another_end(library):
    edit(library, THEORY, "return FACTOR * value", "return FACTOR * passed_on(value)")
    edit(library, THEORY, "return value + OFFSET", "return law(value) + OFFSET")
    assert ("position_bias.wing.theory", "law") in Library(library).reach(SCRIPT)


def test_a_relative_import_is_refused_because_it_would_be_missed(library):
    edit(library, FIGURES, "import json", "from . import theory as laws")
    with refused("figures", "line 3", by=ValueError):
        Library(library).digest(SCRIPT)


def test_the_imports_of_a_module_are_those_within_functions_too(library):
    modules = Library(library)
    assert modules.imports("position_bias.wing.plugins") == {"position_bias.wing.registry"}
    assert "position_bias.wing.within" in modules.imports("position_bias.wing.figures")
    assert ("position_bias.wing.plugins", IMPORT) in modules.reach(SCRIPT)


def test_what_is_left_out_is_there():
    """A name that is gone would leave out its successor's edits no more, and say nothing."""
    library = Library(ROOT)
    for module, names in LEFT_OUT.items():
        assert names <= library.module(module).texts.keys()
