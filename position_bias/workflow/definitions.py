"""This module finds the definitions that a job runs; a digest of them, among the params of its rule, tells their edits.

A definition is what a name of a module stands for: a function, a class with its methods, a constant. From what a script
and a row name, names are followed from definition to definition, in the syntax trees of modules. What a module does
besides, as it is imported, counts wherever it is imported; what cannot be followed counts as a whole module, or as the
whole library. Comments, docstrings, places and the words of messages count nowhere.

An assignment is taken to do no more than give names a value, unless it calls a function of the library.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

PACKAGES = ("position_bias", "position_card")
Symbol = tuple[str, str]  # a module and a name in it, perhaps with attributes; "" is all that is in the module
IMPORT = "import"  # in place of a name: what a module does as it is imported

LEFT_OUT = {  # what decides no number, with all that it alone reaches
    "position_card.core.runtime": {  # logs, messages, progress, whole files, memory that is kept
        *("InputError", "announce", "job", "keep_freed_memory", "log", "out_of_memory", "progress"),
        *("whole_directory", "whole_file"),
    },
    "position_bias.workflow.calls": {"row_function"},  # imports what the row names, which is followed from there
}
PLAIN = {"cache", "contextmanager", "dataclass", "lru_cache", "no_grad"}  # decorators that register nothing
OF_MODULE = re.compile(r"__name__|globals|locals")  # finds any name of a module
OF_LIBRARY = re.compile(  # finds any module
    r"__import__|eval|exec|(importlib|pkgutil|runpy)\.(?!metadata|resources|util\.find_spec).+"
)
ENDS = re.compile(r"(.*\.)?\w*Error")  # is called with the message that a job ends with
SAYS = re.compile(r"(.*\.)?(announce|log\.(debug|info|warning|error|exception|critical))")  # or that it goes on with


class Library:
    """The library in a folder, as its files are when they are first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.exists, self.module, self.leads_to = cache(self._exists), cache(self._module), cache(self._leads_to)

    def digest(self, script: str, functions: Iterable[str] = ()) -> str:
        """Return a digest of all definitions that a job reaches, which changes where one of them is edited.

        The text of its script is not among them: Snakemake looks at that by itself.
        """
        total = blake2b(digest_size=12)
        for module, name in sorted(self.reach(script, functions)):
            if module != script and (text := self.module(module).text(name)):
                total.update(f"{module} {name} {text}\n".encode())
        return total.hexdigest()

    def reach(self, script: str, functions: Iterable[str] = ()) -> set[Symbol]:
        """Return the symbols that a script (a path) and functions (MODULE:FUNCTION) name, or reach through others."""
        symbols: set[Symbol] = set()
        queue = {(script, name) for name in self.module(script).texts}
        queue |= self._in_library(symbol for function in functions for symbol in _in_string(function))
        while queue:
            symbols.add(symbol := queue.pop())
            queue |= self.leads_to(symbol) - symbols
        return symbols

    def imports(self, source: str) -> set[str]:
        """The modules that a module, or a script by its path, imports itself."""
        run = self._in_library(self.module(source).names[IMPORT])
        return {module for module, name in run if name == IMPORT and module != source}

    def file(self, name: str) -> Path:
        """Where a module is, or a script by its path."""
        path = self.root / name if name.endswith(".py") else self.root.joinpath(*name.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def _exists(self, name: str) -> bool:
        """Say whether a module of the packages, or a script by its path, has a file."""
        return (name.endswith(".py") or _first(name) in PACKAGES) and self.file(name).is_file()

    def _module(self, name: str) -> "Module":
        return Module(name, self.file(name).read_text(encoding="utf-8"))

    def _in_library(self, symbols: Iterable[Symbol]) -> set[Symbol]:
        """Those that are of the library, and not left out."""
        return {
            symbol
            for symbol in symbols
            if self.exists(symbol[0]) and _first(symbol[1]) not in LEFT_OUT.get(symbol[0], ())
        }

    def _leads_to(self, symbol: Symbol) -> set[Symbol]:
        """What counts with a symbol: what its definition names, or what it is imported from."""
        name, name_path = symbol
        module, (first, _, attributes) = self.module(name), name_path.partition(".")
        symbols = {(name, IMPORT), (name.rpartition(".")[0], IMPORT)}
        if not name_path:
            symbols |= {(name, text) for text in (*module.texts, *module.imported)}
            if self.file(name).name == "__init__.py":
                symbols |= {(f"{name}.{path.stem}", "") for path in self.file(name).parent.iterdir()}
        elif first in module.texts or first in module.imported or self.exists(f"{name}.{first}"):
            if first in module.texts:
                symbols |= {(name, first)} if attributes else module.names[first]
            symbols |= {
                (imported_module, _join(inner, attributes)) for imported_module, inner in module.imported.get(first, ())
            }
            symbols.add((f"{name}.{first}", attributes))
        else:
            symbols.add((name, ""))
        return self._in_library(symbols)


class Module:
    """What stands in a file: of each name that it defines, the text and what that names; and what its imports mean."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.texts, self.names = defaultdict(str, {IMPORT: ""}), defaultdict[str, set[Symbol]](set)
        self.imported = defaultdict[str, set[Symbol]](set)
        statements = [Statement(node) for node in ast.parse(text, name).body if not _is_docstring(node)]
        for statement in statements:
            for node in statement.imports:
                self._import(node)
            for name_defined in statement.defines:
                self.texts[name_defined] += statement.text
        library_names = {
            name for name, origins in self.imported.items() if any(_first(module) in PACKAGES for module, _ in origins)
        }
        for statement in statements:
            symbols = set(self._symbols(statement))
            for name_defined in statement.defines:
                self.names[name_defined] |= symbols
            if statement.does_more(library_names | self.texts.keys()):
                self.names[IMPORT] |= {(name, name_defined) for name_defined in statement.defines}

    def text(self, path: str) -> str:
        """What the definition of a name says, or where it is imported from."""
        return f"{sorted(self.imported.get(_first(path), ())) or ''}{self.texts.get(path, '')}"

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom) and node.level:
            raise ValueError(f"{self.name}: relative import in line {node.lineno}: write the whole module name")
        for alias in node.names:
            origin, inner = (node.module or "", alias.name) if isinstance(node, ast.ImportFrom) else (alias.name, "")
            self.names[IMPORT] |= {(origin, IMPORT), (f"{origin}.{inner}", IMPORT)}
            if inner == "*":
                self.names[IMPORT].add((origin, ""))
            elif inner or alias.asname:
                self.imported[alias.asname or inner].add((origin, inner))
            else:
                self.imported[_first(origin)].add((_first(origin), ""))

    def _symbols(self, statement: "Statement") -> Iterator[Symbol]:
        """What a statement names, in strings too."""
        for chain in statement.chains:
            first, _, attributes = chain.partition(".")
            origins = self.imported.get(first, set())
            if first in self.texts or origins:
                yield self.name, chain if origins else first
            if OF_MODULE.fullmatch(first):
                yield self.name, ""
            if any(map(OF_LIBRARY.fullmatch, [first, *(_join(*origin, attributes) for origin in origins)])):
                yield from ((package, "") for package in PACKAGES)
        for text in statement.strings:
            if text in self.texts:
                yield self.name, text
            yield from _in_string(text)


class Statement:
    """What a statement says, without what counts nowhere, and the names, strings and imports that are in it."""

    def __init__(self, node: ast.stmt) -> None:
        self.node = node
        self.chains, self.strings, self.called = set[str](), set[str](), set[str]()  # called: at once, by no lambda
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.text = self._text(node)
        self.defines = self._defines()

    def _defines(self) -> set[str]:
        """The names that it gives a meaning, or else what is done at import."""
        if isinstance(self.node, ast.Import | ast.ImportFrom):
            return set()
        if isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return {self.node.name}
        nodes = list(ast.walk(self.node))
        variables = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        definitions = {getattr(node, "name", None) for node in nodes}  # functions and classes under a condition, say
        return variables | {name for name in definitions if isinstance(name, str)} or {IMPORT}

    def does_more(self, library_names: set[str]) -> bool:
        """Whether it may do more at import than give names a value, such as register a definition of the library."""
        match self.node:
            case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
                return not all(_is_plain(decorator) for decorator in decorators)
            case ast.ClassDef(bases=bases, keywords=keywords, decorator_list=decorators):
                may_register = keywords or not library_names.isdisjoint(map(_root, bases))
                return bool(may_register) or not all(_is_plain(decorator) for decorator in decorators)
            case ast.Assign() | ast.AnnAssign():
                targets = self.node.targets if isinstance(self.node, ast.Assign) else [self.node.target]
                inner = any(isinstance(part, ast.Attribute | ast.Subscript) for t in targets for part in ast.walk(t))
                return inner or not library_names.isdisjoint(self.called)
            case _:
                return True

    def _text(self, node: Any, context: str = "") -> str:
        """What stands below a node, as text without places; Python versions that add fields to nodes say the same."""
        if isinstance(node, list):
            parts = [self._text(item, context) for item in node if not _is_docstring(item)]
            return f"[{','.join(filter(None, parts))}]"
        if chain := _chain(node):
            if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
                self.chains.add(chain)
            return chain
        match node:
            case ast.Import() | ast.ImportFrom():
                self.imports.append(node)
            case ast.JoinedStr() | ast.Constant(value=str()) if context == "ends":
                return ""
            case ast.Constant(value=str()) if context == "says":
                return ""
            case ast.Constant(value=str(text)):
                self.strings.add(text)
                if context == "annotation":
                    with suppress(SyntaxError, ValueError):
                        self._text(ast.parse(text, mode="eval").body)
            case ast.Raise():
                context = "ends"
            case ast.Lambda():
                context = context or "later"
            case ast.Call(func=function):
                if context != "later" and not _is_class(function):
                    self.called.add(_root(function))
                name = _chain(function)
                context = "ends" if ENDS.fullmatch(name) else "says" if SAYS.fullmatch(name) else context
        if not isinstance(node, ast.AST):
            return repr(node)
        fields = []
        for name in node._fields:
            if name != "ctx" and (value := getattr(node, name, None)) not in (None, []):
                inner_context = "annotation" if name in ("annotation", "returns") else context
                fields.append(f"{name}={self._text(value, inner_context)}")
        return f"{type(node).__name__}({','.join(fields)})"


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_plain(decorator: ast.expr) -> bool:
    """Say whether a decorator is one of those that register nothing (PLAIN)."""
    return _chain(getattr(decorator, "func", decorator)).rpartition(".")[2] in PLAIN


def _is_class(function: ast.expr) -> bool:
    """Whether what is called is a class, as its name says."""
    return _chain(function).rpartition(".")[2][:1].isupper()


def _chain(node: Any) -> str:
    """A name with its attributes, as np.linalg.norm; "" of what is none."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(attributes)]) if isinstance(node, ast.Name) else ""


def _root(node: Any) -> str:
    """The name that an expression begins with, as `known` in known["those"].add; "" of what has none."""
    while inner := getattr(node, "value", None) or getattr(node, "func", None):
        node = inner
    return getattr(node, "id", "")


def _first(path: str) -> str:
    """Return what stands before the first dot."""
    return path.partition(".")[0]


def _join(*names: str) -> str:
    """Join the parts of a dotted name; empty ones are left out."""
    return ".".join(filter(None, names))


def _in_string(text: str) -> Iterator[Symbol]:
    """What a string may name: MODULE:FUNCTION, seen from position_bias or from outside, or PACKAGE.MODULE."""
    if match := re.fullmatch(r"([\w.]+):(\w+)", text):
        yield from ((module, match[2]) for module in (match[1], f"{PACKAGES[0]}.{match[1]}"))
    elif re.fullmatch(rf"({'|'.join(PACKAGES)})(\.\w+)+", text):
        yield _first(text), text.partition(".")[2]
