"""The site has every page, whole, and needs nothing from elsewhere: neither its pages nor its search."""

import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt

from tests import browser
from tools import website

ROOT = Path(__file__).parents[2]
PAGES = [path.relative_to(ROOT) for of in ("*.md", "[!.]*/README.md", "docs/**/*.md") for path in ROOT.glob(of)]
INDEX = Path(website.INDEX)
LISTED = [Path(path) for _, _, path in website.listed(ROOT)]


def test_the_index_lists_every_page_once():
    assert sorted(set(PAGES) - {INDEX} - set(LISTED)) == [], "give each of these pages a line in docs/README.md"
    assert Counter(LISTED) == Counter(set(PAGES) - {INDEX})


def test_the_index_says_of_every_page_what_it_is():
    items = (ROOT / INDEX).read_text().split("\n- ")[1:]
    assert [item for item in items if len(item.partition("): ")[2].split()) < 3] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    ended = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder


class Read(HTMLParser):
    """How many elements of each kind a text has, and where they lead."""

    def __init__(self, text):
        super().__init__()
        self.kinds, self.addresses, self.anchors = Counter(), [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found.get("id"), found.get("name")}
        if found.get("class") == "headerlink" or (tag == "a" and "href" not in found):
            return
        self.kinds[tag] += 1
        self.addresses += [(tag, found[key]) for key in ("href", "src") if found.get(key)]


def of(page, site):
    """The file of the site that a page of Markdown becomes."""
    return site / (page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html"))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_has_the_parts_that_another_reader_of_markdown_sees(page, site):
    expected = Read(MarkdownIt("commonmark").enable("table").render((ROOT / page).read_text())).kinds
    shown = Read(of(page, site).read_text().partition("<article")[2].partition("</article>")[0]).kinds
    kinds = ("h1", "h2", "h3", "h4", "ul", "ol", "li", "tr", "td", "pre", "code", "img", "a")
    assert {kind: shown[kind] for kind in kinds} == {kind: expected[kind] for kind in kinds}


def test_every_address_leads_to_a_place_in_the_site_and_nothing_but_a_link_leads_elsewhere(site):
    read = {path: Read(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    lost = []
    for path, page in read.items():
        for tag, address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                lost += [] if tag == "a" else [(path, address)]
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = read[aim].anchors if aim in read else {unquote(parts.fragment)}
            lost += [] if aim.is_file() and unquote(parts.fragment) in known else [(path, address)]
    assert lost == []
    assert sum(len(page.addresses) for page in read.values()) > 1000


def test_a_file_that_is_no_page_is_shown_as_it_is(site):
    assert (site / "rules/structural.smk.txt").read_bytes() == (ROOT / "rules/structural.smk").read_bytes()


@browser.needed
def test_a_browser_without_a_network_opens_the_front_page_and_searches_all_pages(site, tmp_path):
    page, errors = browser.opened(f"{(site / 'index.html').as_uri()}?q=mutants", tmp_path)
    assert errors == []
    assert (ROOT / "README.md").read_text().splitlines()[2].partition(".")[0] in page
    results = page.partition('<ol class="md-search-result__list"')[2].partition("</ol>")[0]
    assert "docs/mutants.html" in results
    assert all(address.startswith(site.as_uri()) for _, address in Read(results).addresses)
