"""Test that what is nested in lists is indented by four spaces, as Python-Markdown requires.

A code host also accepts two or three. On the site such an item is one of the outer list, and a
block of code ends the list, so that its numbers begin again at 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NESTED_BLOCK = re.compile(r"( +)(?:[-*+] |\d+\. |```|\|)")


def find_misplaced_blocks(page: str) -> Iterator[str]:
    """Yield the first line of each nested item, table and code block with another indentation."""
    is_code = False
    for line in page.splitlines():
        block = NESTED_BLOCK.match(line)
        if block and not is_code and len(block[1]) % 4 != 0:
            yield line
        if line.lstrip().startswith("```"):
            is_code = not is_code


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_nested_blocks_are_indented_by_four_spaces(path: Path) -> None:
    assert list(find_misplaced_blocks(path.read_text())) == []


@pytest.mark.parametrize("block", ["- one", "1. one", "```sh\n  ls\n  ```", "| one |"])
def test_a_block_with_another_indentation_is_found(block: str) -> None:
    first_line = block.partition("\n")[0]
    assert list(find_misplaced_blocks(f"1. outer\n\n   {block}")) == [f"   {first_line}"]
    assert list(find_misplaced_blocks(f"1. outer\n\n    {block}")) == []
