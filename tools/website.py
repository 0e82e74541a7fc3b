"""How mkdocs.yml finds the pages of this project: docs/README.md lists them, and the site has them in its order.

Files keep the paths that they have in the repository, so that links work in both. A file that a page links to is in the
site, too: as a plain text where a browser would not show it otherwise.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
INDEX = "docs/README.md"
SHOWN = (".md", ".png", ".ipynb")  # as they are; what has another suffix becomes a text
WORKER = "tools/iframe-worker.js"
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the order of the pages from the index."""
    sections: dict[str, list[dict[str, str]]] = {}
    for section, title, path in listed(ROOT):
        sections.setdefault(section, []).append({title: path})
    config.nav = [{"All pages": INDEX}, *({section: pages} for section, pages in sections.items())]
    return config


def listed(root: Path) -> Iterator[tuple[str, str, str]]:
    """The section, title and path of every page that the index below `root` lists, the first links of its items."""
    section = ""
    for token in inline((root / INDEX).read_text()):
        if token.level == 1:  # a heading or a paragraph; items of lists lie deeper
            section = token.content
        elif link := next(links(token), None):
            parts = token.children or []
            yield section, parts[parts.index(link) + 1].content, target(INDEX, link)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of docs/ by the pages of the index and all that they link to."""
    pages = {INDEX} | {path for _, _, path in listed(ROOT)}
    texts = {page: (ROOT / page).read_text() for page in pages}
    linked = {target(page, link) for page, text in texts.items() for token in inline(text) for link in links(token)}
    found = [File.generated(config, path, abs_src_path=str(ROOT / path)) for path in sorted(pages | linked)]
    for file in found:
        file.dest_uri += "" if PurePosixPath(file.src_uri).suffix in SHOWN else ".txt"
    worker = File.generated(config, "assets/iframe-worker.js", abs_src_path=str(ROOT / WORKER))
    return Files([*(file for file in files if file.src_dir != config.docs_dir), *found, worker])


def on_page_markdown(markdown: str, **_: object) -> str:
    """Indent twice as far what is no block of code: items of lists lie two spaces deep here, and four for MkDocs."""
    parts = FENCE.split(markdown)
    parts[::2] = [re.sub(r"^ +", lambda spaces: 2 * spaces[0], part, flags=re.MULTILINE) for part in parts[::2]]
    return "".join(parts)


def inline(page: str) -> Iterator[Token]:
    """The headings, paragraphs and cells of a page in Markdown."""
    return (token for token in MarkdownIt().enable("table").parse(page) if token.type == "inline")


def links(token: Token) -> Iterator[Token]:
    """The links and images of a paragraph that lead to files of the project."""
    return (part for part in token.children or [] if not re.match(r"$|#|\w+:", address(part)))


def address(link: Token) -> str:
    """Where a link or image leads; nothing for other tokens."""
    return str(link.attrs.get("href") or link.attrs.get("src") or "")


def target(page: str, link: Token) -> str:
    """The path, from the root, of the file that a link of `page` leads to."""
    return normpath(PurePosixPath(page).parent / address(link).partition("#")[0])
