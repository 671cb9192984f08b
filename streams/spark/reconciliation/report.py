"""Define the report of a reconciliation: its result, as text, as HTML or on a console."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streams.spark.reconciliation.html_report import render_html
from streams.spark.reconciliation.result import ReconciliationResult
from streams.spark.reconciliation.text_report import print_report, summarize_report

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class Report(ReconciliationResult):
    """Represents the result of reconciling an application at a consistent cut.

    `coverage`: how much of what was asked for was checked; `accounts`: what was, by name;
    `refused`: what could not be. `in_flight`: the records in transit between sub-topologies at the
    cut (topic, partition, offset; key as bytes), None where that is not known.
    """

    def summary(self) -> str:
        """Summarize the report for a person, in a few lines of text."""
        return summarize_report(self)

    def show(self, console: Console | None = None) -> None:
        """Print the summary and the rows that are off."""
        print_report(self, console)

    def to_html(self, path: Path | str) -> None:
        """Write the report to a file as an HTML page that needs no other file."""
        Path(path).write_text(render_html(self), encoding="utf-8")

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *error: object) -> None:
        self.unpersist()
