"""Test that the examples of the page on windows do what it says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "windows.md"


def test_the_examples_of_the_page_hold_one_after_the_other() -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 6
