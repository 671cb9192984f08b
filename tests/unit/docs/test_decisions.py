"""Test that each decision says when it was made and whether it holds, and that all are listed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
HEAD = re.compile(
    r"# (?P<number>\d+)\. (?P<title>\S.*)\n\n"
    r"(?:Accepted|Withdrawn|Replaced by \[\d+\]\((?P<next>\d{4}-\S+\.md)\)), \d{4}-\d\d-\d\d\.\n\n"
)
ITEM = re.compile(r"- \[(?P<number>\d+)\]\(decisions/(?P<file>\S+)\) (?P<title>\S.*)")
UNUSED = re.compile(
    r"- (?P<first>\d+)(?: to (?P<last>\d+))?: no page; the numbers? wa?(?:s|ere) not"
)


def read_decisions() -> dict[str, str]:
    return {path.name: path.read_text() for path in (DOCS / "decisions").glob("*.md")}


def read_list() -> list[str]:
    """Return the items of the list in docs/architecture.md, each as one line."""
    page = (DOCS / "architecture.md").read_text()
    section = page.partition("Later decisions have a page each")[2].partition("\n## ")[0]
    return [" ".join(each.split()) for each in re.findall(r"^- (?:.+\n)(?:  .+\n)*", section, re.M)]


def find_wrong_heads(pages: Mapping[str, str]) -> Iterator[str]:
    """Yield the pages that do not begin with their number, a title, a status and a date."""
    for name, text in sorted(pages.items()):
        head = HEAD.match(text)
        if head is None or int(head["number"]) != int(name[:4]):
            yield f"{name}: begin with '# {int(name[:4])}. Title', and 'Accepted, YYYY-MM-DD.'"
        elif head["next"] and head["next"] not in pages:
            yield f"{name}: there is no {head['next']}"


def find_wrong_items(pages: Mapping[str, str], items: list[str]) -> Iterator[str]:
    """Yield what the list lacks: a page with its title, a number, or the order of the numbers."""
    expected = 1
    listed = set()
    for item in items:
        found, unused = ITEM.match(item), UNUSED.match(item)
        first = int(found["number"] if found else unused["first"] if unused else 0)
        if first != expected:
            yield f"{item}: number {expected} comes here, or 'no page; the number was not used'"
        expected = int((unused and unused["last"]) or first) + 1
        if found:
            listed.add(found["file"])
            head = HEAD.match(pages.get(found["file"], ""))
            if head is None or head["title"] != found["title"]:
                yield f"{item}: its title is {head and head['title']}"
    yield from (f"{name}: not listed" for name in sorted(pages.keys() - listed))


def test_each_decision_has_its_number_a_title_a_status_and_a_date() -> None:
    assert list(find_wrong_heads(read_decisions())) == []


def test_the_list_names_each_number_once_in_order_and_each_page_with_its_title() -> None:
    assert list(find_wrong_items(read_decisions(), read_list())) == []


PAGES = {
    "0001-a.md": "# 1. First\n\nReplaced by [3](0003-c.md), 2026-11-21.\n\nWhy.",
    "0003-c.md": "# 3. Third\n\nAccepted, 2026-11-22.\n\nWhy.",
}
LIST = [
    "- [1](decisions/0001-a.md) First",
    "- 2: no page; the number was not used",
    "- [3](decisions/0003-c.md) Third",
]


def test_a_page_without_number_status_date_or_successor_is_found() -> None:
    assert not list(find_wrong_heads(PAGES))
    for old, new in (("# 3. ", "# "), ("# 3", "# 4"), ("Accepted, ", ""), (", 2026-11-22", "")):
        changed = PAGES | {"0003-c.md": PAGES["0003-c.md"].replace(old, new)}
        assert list(find_wrong_heads(changed)), (old, new)
    assert list(find_wrong_heads({"0001-a.md": PAGES["0001-a.md"]}))


def test_an_item_that_lacks_or_is_out_of_order_is_found() -> None:
    assert not list(find_wrong_items(PAGES, LIST))
    assert list(find_wrong_items(PAGES, LIST[:2]))
    assert list(find_wrong_items(PAGES, LIST[::2]))
    assert list(find_wrong_items(PAGES, LIST[::-1]))
    assert list(find_wrong_items(PAGES, [*LIST[:2], LIST[2] + " and more"]))
