"""Write what a command has measured into a page, between two marks."""

from __future__ import annotations

from pathlib import Path

_END = "<!-- to here -->"


def write_measured(page: Path, command: str, text: str) -> None:
    """Put `text` between the mark that names the command and the next end of such a place."""
    begin = f"<!-- of {command} -->"
    before, found, rest = page.read_text().partition(begin)
    _, end, after = rest.partition(_END)
    if not (found and end):
        raise ValueError(f"{page} has no place for what `{command}` measures: {begin} ... {_END}")
    page.write_text(f"{before}{begin}\n{text}\n{_END}{after}")
