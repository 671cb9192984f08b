"""Test that the examples of docs/joins.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "joins.md"


def test_the_examples_of_the_page_hold() -> None:
    found: dict[str, Any] = {}
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for example in examples:
        exec(example, found)
    assert len(examples) == 5
