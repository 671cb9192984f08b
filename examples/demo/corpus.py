"""Read the demo's input: the source lines of the Python standard library, without its tests."""

from __future__ import annotations

import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "__pycache__"}


class Line(NamedTuple):
    """Represents a line of text and the file that it is from."""

    file: str
    text: str


def read_lines() -> Iterator[Line]:
    """Yield all lines, file by file, in the same order each time."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if _LEFT_OUT.isdisjoint(relative.parts):
            text = path.read_text(encoding="utf-8", errors="replace")
            for line in text.split("\n"):
                yield Line(str(relative), line)


def count_words(lines: list[Line]) -> Counter[str]:
    """Count the words of lines with a plain loop, as the truth that counts are compared with."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.text.split())
    return counts
