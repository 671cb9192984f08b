"""Compare the times of the parts with their entries in the table of CONTRIBUTING.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
SLACK = 4 / 3
"""A part that takes a third longer than its entry is named."""
GRACE_S = 10.0
"""A short part is not named for the seconds that any start may take."""
_ROW = re.compile(r"^\| (?P<name>[^|]+?) \| (?P<seconds>\d+) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Holds the outcome of one part."""

    part: str
    seconds: float
    verdict: str

    @property
    def passed(self) -> bool:
        return self.verdict == "passed"


def read_entries(text: str) -> Mapping[str, int]:
    """Return the seconds of each part from the table in a page of Markdown."""
    return {found["name"]: int(found["seconds"]) for found in _ROW.finditer(text)}


def find_overruns(outcomes: Sequence[Outcome], entries: Mapping[str, int]) -> list[str]:
    """Return a line for each part that took a third longer than its entry, or has none."""
    lines = []
    for each in outcomes:
        entry = entries.get(each.part)
        if entry is None:
            lines.append(f"{each.part} has no entry in {PAGE.name}: it took {each.seconds:.0f} s")
        elif each.seconds > max(entry * SLACK, entry + GRACE_S):
            lines.append(f"{each.part} took {each.seconds:.0f} s; its entry says {entry} s")
    return lines


def format_table(outcomes: Sequence[Outcome], elapsed_s: float) -> str:
    """Return a row for each part, in the form of the table in CONTRIBUTING.md, and their sums."""
    rows = [f"| {each.part} | {each.seconds:.0f} |" for each in outcomes]
    total_s = sum(each.seconds for each in outcomes)
    ends = f"{total_s:.0f} s of parts in {elapsed_s:.0f} s ({elapsed_s / 60:.1f} min)"
    return "\n".join(["| part | seconds |", "|---|---|", *rows, ends])
