"""Test that the built site loads nothing from elsewhere, is searchable, and has the whole API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import coordinator
import streams
from streams import serdes, spark, task_assignment, windows

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
REMOTE = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
LOADS = {
    "link": "href",
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
}
"""The attribute of each element whose address a browser loads without being asked."""
LOADED_BY_TEXT = re.compile(
    r"""(?:url\(|@import|import\()\s*["']?(?:https?:)?//[^\s"')]+"""
    r"""|https?://(?!github\.com/\S+/blob/)[^\s"'`)\\]+\.(?:js|css|woff2?|wasm)\b""",
    re.IGNORECASE,
)
"""An address in a script or a style sheet that is there to be loaded. Comments of the theme's
search name sources on a code host, whose pages are no scripts."""
SCRIPTS_OF_OTHERS = "https://unpkg.com/"


class RemoteLoads(HTMLParser):
    """Collects what a page would load from another host, and its diagrams that need a script."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._relation = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        address = values.get(LOADS.get(tag, ""), "")
        # A canonical address is named, and not loaded.
        if REMOTE.match(address) and values.get("rel") != "canonical":
            self.found.append(f"<{tag}> loads {address}")
        if "mermaid" in values.get("class", "").split():
            self.found.append(f"<{tag} class=mermaid> would load a script")


def find_remote_loads(html: str) -> list[str]:
    """Return what a page of HTML would load from another host."""
    parser = RemoteLoads()
    parser.feed(html)
    parser.close()
    return parser.found


def files(*suffixes: str) -> Iterator[Path]:
    found = [path for path in sorted(SITE.rglob("*")) if path.suffix in suffixes]
    assert found, f"{SITE} has no {suffixes}: run `make docs`"
    yield from found


def test_no_page_loads_anything_from_another_host() -> None:
    found = {str(page): find_remote_loads(page.read_text()) for page in files(".html")}
    assert len(found) > 40
    assert {page: loads for page, loads in found.items() if loads} == {}


def test_no_script_and_no_style_sheet_loads_anything_from_another_host() -> None:
    found = {
        str(file): LOADED_BY_TEXT.findall(text) + [SCRIPTS_OF_OTHERS] * (SCRIPTS_OF_OTHERS in text)
        for file in files(".js", ".css")
        for text in [file.read_text()]
    }
    assert {file: loads for file, loads in found.items() if loads} == {}


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example/a.js"></script>',
        "<link rel=stylesheet href=//fonts.example/a.css>",
        '<link rel="preconnect" href="https://fonts.example">',
        '<p><img alt="" src="http://example/a.png"></p>',
        '<pre class="mermaid"><code>flowchart</code></pre>',
    ],
)
def test_a_page_that_loads_from_another_host_is_found(html: str) -> None:
    assert len(find_remote_loads(html)) == 1


@pytest.mark.parametrize(
    "html",
    ['<a href="https://kafka.apache.org">', '<script src="../a.js"></script>', '<img src="a.png">'],
)
def test_a_link_that_a_reader_follows_is_no_load(html: str) -> None:
    assert find_remote_loads(html) == []


@pytest.mark.parametrize(
    "text",
    [
        "@font-face{src:url(https://fonts.example/a.woff2)}",
        '@import "//example/a.css"',
        'import("https://example/a")',
        'load("https://example/npm/mermaid.min.js")',
    ],
)
def test_an_address_in_a_script_or_a_style_sheet_is_found(text: str) -> None:
    assert LOADED_BY_TEXT.search(text)


def test_pages_and_their_sections_can_be_searched() -> None:
    index = json.loads((SITE / "search" / "search_index.json").read_text())
    places = {entry["location"] for entry in index["docs"]}
    pages = [path.stem for path in (ROOT / "docs").glob("*.md") if path.stem != "index"]
    assert {f"{page}/" for page in pages} - places == set()
    assert "joins/#two-streams" in places
    assert not any(place.startswith("source/") for place in places)


API = {
    "streams": sorted(
        {*streams.__all__, *task_assignment.__all__} - {"serdes", "task_assignment", "windows"}
    ),
    "serdes": sorted({*serdes.__all__, "tumbling", "hopping", "sliding", "session", "unlimited"}),
    "spark": sorted(spark.__all__),
    "coordinator": sorted(coordinator.__all__),
    "state": ["KeyValueStore", "SessionStore", "StateError", "VersionedStore", "WindowStore"],
}


@pytest.mark.parametrize(("page", "name"), [(page, name) for page in API for name in API[page]])
def test_every_public_name_has_an_entry(page: str, name: str) -> None:
    html = (SITE / "api" / page / "index.html").read_text()
    assert re.search(rf'id="[\w.]+\.{name}"', html)


def test_the_functions_of_windows_are_those_that_the_page_names() -> None:
    classes = {name for name in windows.__all__ if name[0].isupper()}
    assert {*windows.__all__} - classes <= {*API["serdes"]}
