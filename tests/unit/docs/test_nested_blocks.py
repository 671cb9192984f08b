"""Test that lists are laid out as Python-Markdown requires, which is stricter than a code host.

Without it the site shows nested items as items of the outer list, an item as text of the paragraph
above it, or the steps after a block of code numbered from 1 again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
ITEM = re.compile(r"( *)(?:[-*+]|\d+\.) ")
BLOCK = re.compile(r"( +)(?:[-*+] |\d+\. |```|\|)")


def find_misplaced_blocks(page: str) -> Iterator[str]:
    """Yield the lines at which a block would not be shown as it is meant.

    A nested item, table or block of code is indented by four spaces. An item needs an empty line
    above it, unless it follows an item of its own list or begins a list within an item.
    """
    above: list[str] = []  # the lines since the last empty one
    is_code = False
    for line in page.splitlines():
        block, item = BLOCK.match(line), ITEM.match(line)
        is_misplaced = block is not None and len(block[1]) % 4 != 0
        is_glued = item is not None and above != [] and not begins_item(above, len(item[1]))
        if not is_code and (is_misplaced or is_glued):
            yield line
        if line.lstrip().startswith("```"):
            is_code = not is_code
        above = [*above, line] if line.strip() else []


def begins_item(above: list[str], indentation: int) -> bool:
    """Say whether an item of this indentation may follow these lines without an empty one."""
    items = [ITEM.match(line) for line in above]
    last = next((item for item in reversed(items) if item is not None), None)
    return last is not None and len(last[1]) <= indentation and above[-1].strip() != "```"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_lists_are_shown_as_they_are_meant(path: Path) -> None:
    assert list(find_misplaced_blocks(path.read_text())) == []


@pytest.mark.parametrize("block", ["- one", "1. one", "```sh\n  ls\n  ```", "| one |"])
def test_a_nested_block_with_another_indentation_is_found(block: str) -> None:
    first_line = block.partition("\n")[0]
    assert list(find_misplaced_blocks(f"1. outer\n\n   {block}")) == [f"   {first_line}"]
    assert list(find_misplaced_blocks(f"1. outer\n\n    {block}")) == []


@pytest.mark.parametrize("above", ["text", "1. outer\n\n    - inner", "1. outer\n\n    text"])
def test_an_item_that_is_glued_to_another_block_is_found(above: str) -> None:
    assert list(find_misplaced_blocks(f"{above}\n2. item")) == ["2. item"]
    assert list(find_misplaced_blocks(f"{above}\n\n2. item")) == []


def test_items_of_one_list_need_no_empty_lines() -> None:
    page = "1. one\n   more of it\n2. two\n    - inner\n    - inner"
    assert list(find_misplaced_blocks(page)) == []
