"""Write down in docs/versions.md what the suite has found on each version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.kafka.versions import VERSIONS

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"


class Found(NamedTuple):
    """Holds what a cell says: `yes`, `failed`, or what there is in its place."""

    cell: str


def create_table(found: Mapping[tuple[str, str], Found]) -> str:
    """Create the table of features by version, as Markdown."""
    features = list(dict.fromkeys(feature for feature, _ in found))
    lines = [
        f"| {' | '.join(('', *VERSIONS))} |",
        "|---|" + "---|" * len(VERSIONS),
        *(
            f"| {feature} | "
            + " | ".join(found.get((feature, each), Found("not run")).cell for each in VERSIONS)
            + " |"
            for feature in features
        ),
    ]
    return "\n".join(lines)


def read_table(page: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the versions and the rows of the page's table. Raises ValueError without one."""
    _, begin, rest = page.partition(BEGIN)
    table, end, _ = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} followed by {END}")
    rows = [line[1:-1].split("|") for line in table.splitlines() if line.startswith("|")]
    cells = [[each.strip() for each in row] for row in rows]
    if not cells:
        return [], {}
    return cells[0][1:], {row[0]: row[1:] for row in cells[2:]}


def write_table(path: Path, found: Mapping[tuple[str, str], Found]) -> None:
    """Replace the columns that were run in the table of a page, with the day of the run."""
    page = path.read_text()
    versions, rows = read_table(page)
    kept = {
        (feature, version): Found(cell)
        for feature, cells in rows.items()
        for version, cell in zip(versions, cells, strict=True)
    }
    found = kept | dict(found)
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    day = datetime.now(UTC).date().isoformat()
    measured = f"The last column to change was measured on {day} by `make versions`."
    measured = f"{measured}\n\n{create_table(found)}"
    path.write_text(f"{before}{BEGIN}\n\n{measured}\n\n{END}{after}")
