"""Name every sentence of the project's pages, captions and docstrings that is too long to be understood at once.

    PYTHONPATH=. python tools/plain.py        (make check)

A sentence ends at a full stop, a question mark, an exclamation mark, a colon or a semicolon. Blocks of code and
addresses of links do not count. No page and no sentence is exempt.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
LONGEST = 35  # words
PAGES = ("*.md", "*/README.md", "docs/**/*.md", "report/**/*.rst")
MODULES = ("position_bias/**/*.py", "tools/*.py", "launcher/**/*.py", "run_job.py")
END = re.compile(r"[.?!:;][)*\"']*\s+")
DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef)
TEMPLATE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)  # what a caption takes from the configuration


def main() -> None:
    """Print the sentences that are too long, each with its file and line. Exits with 1 where there are any."""
    long = [
        f"{where}: {size} words: {sentence}" for where, sentence in told(ROOT) if (size := words(sentence)) > LONGEST
    ]
    print(*long, sep="\n")
    sys.exit(f"{len(long)} sentences have more than {LONGEST} words; say one thing in each" if long else 0)


def told(root: Path) -> Iterator[tuple[str, str]]:
    """Every sentence of the pages, captions and public docstrings below `root`, with its file and line."""
    for path in sorted(path for pattern in (*PAGES, *MODULES) for path in root.glob(pattern)):
        text = path.read_text()
        texts = docstrings(text) if path.suffix == ".py" else [(1, TEMPLATE.sub("value", text))]
        for first, page in texts:
            for line, paragraph in paragraphs(page):
                yield from ((f"{path.relative_to(root)}:{first + line}", part) for part in sentences(paragraph))


def docstrings(module: str) -> Iterator[tuple[int, str]]:
    """The docstrings of a module and of what is public in it, with their lines."""
    described = (node for node in ast.walk(ast.parse(module)) if isinstance(node, DESCRIBED))
    public = (node for node in described if not getattr(node, "name", "").startswith("_"))
    yield from ((node.body[0].lineno, text) for node in public if (text := ast.get_docstring(node)))


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """The paragraphs, headings and cells of tables of a page in Markdown, with their lines counted from 0."""
    for token in MarkdownIt().enable("table").parse(page):
        if token.type == "inline" and token.map:
            parts = (" " if part.type in ("softbreak", "hardbreak") else part.content for part in token.children or [])
            yield token.map[0], "".join(parts)


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, without the signs that end them."""
    return [" ".join(part.split()) for part in END.split(paragraph)]


def words(sentence: str) -> int:
    """How many words a sentence has. What has neither letter nor digit is no word."""
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


if __name__ == "__main__":
    main()
