import pytest

from position_bias.running import imports


@pytest.fixture
def project(tmp_path):
    for name, text in {
        "position_bias/__init__.py": "",
        "position_bias/a.py": "import position_bias.sub.b\nimport numpy",
        "position_bias/sub/__init__.py": "",
        "position_bias/sub/b.py": "def f():\n    from position_bias import c\n",
        "position_bias/c.py": "try:\n    from position_bias import a\nexcept ImportError:\n    import position_bias.d",
        "position_bias/d.py": "match 1:\n    case 1:\n        with open('x'):\n            import position_bias.e",
        "position_bias/e.py": "",
        "position_bias/unused.py": "import position_bias.a",
        "scripts/run.py": "from position_bias.a import something",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def names(files, root):
    return [path.relative_to(root / "position_bias").as_posix() for path in files]


def test_the_closure_holds_what_is_imported_directly_within_functions_and_in_circles(project):
    files = sorted(imports.closure([project / "scripts/run.py"], project))
    assert names(files, project) == ["__init__.py", "a.py", "c.py", "d.py", "e.py", "sub/__init__.py", "sub/b.py"]


def test_a_relative_import_is_refused_because_it_would_be_missed(project):
    (project / "scripts/relative.py").write_text("from . import a")
    with pytest.raises(ValueError, match="line 1: write the whole module name"):
        imports.imported(project / "scripts/relative.py", project)
