"""The examples of the pages in docs/, as texts and as what they define when they are run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[3] / "docs"


def find_blocks(text: str, language: str = "python") -> list[str]:
    """Return the code blocks of this language in a text, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def read_blocks(page: str, language: str = "python") -> list[str]:
    """Return the code blocks of this language on a page of docs/."""
    return find_blocks((DOCS / page).read_text(), language)


def run_examples(page: str) -> dict[str, Any]:
    """Run the Python examples of a page one after the other, and return what they define."""
    found: dict[str, Any] = {}
    for block in read_blocks(page):
        exec(block, found)
    return found
