"""Format a report as text: a line for each store and topic, and for each row that is off."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from streams.common.counted import format_count
from streams.spark.reconciliation.comparing import OFF_VERDICTS, RowVerdict

if TYPE_CHECKING:
    from pyspark.sql import Row

    from streams.spark.reconciliation.result import CheckedAccount, ReconciliationResult

ROWS_MAX = 20
_POSITIONS_SHOWN_MAX = 12


def summarize_report(report: ReconciliationResult) -> str:
    """Summarize a report: coverage, result, consistent cut, a line for each store and topic."""
    return "\n".join(_format_summary_lines(report))


def _format_summary_lines(report: ReconciliationResult) -> Iterator[str]:
    """Yield the lines of a report's summary."""
    yield str(report.coverage)
    yield format_headline(report)
    yield format_cut(report)
    for each in report.accounts.values():
        yield f"  {each.kind.value} {each.name}: {format_counts(each)} ({each.account.method})"
    allowed = report.coverage.allowed
    for refused in report.refused:
        how = "not checked, as allowed" if refused.name in allowed else "not checked"
        yield f"  {how}: {refused.name}: {refused.why}"
    for dead_letters in report.dead_letters:
        yield f"  {dead_letters}"
    if line := format_records_in_transit(report):
        yield f"  {line}"


def format_headline(report: ReconciliationResult) -> str:
    """Format the overall verdict on the application as one line."""
    name = report.application_id
    missed = report.coverage.unchecked
    rest = f", {format_count(len(missed), 'account')} not checked" if missed else ""
    if report.is_off:
        off = sum(report.count(verdict) for verdict in OFF_VERDICTS)
        return f"The results of {name} are NOT as expected: {format_count(off, 'record')} off{rest}"
    ok = report.count(RowVerdict.OK)
    if not report.balanced:
        return (
            f"The results of {name} were NOT checked as asked ({', '.join(report.unchecked)}): "
            f"{format_count(ok, 'record')} as expected{rest}"
        )
    if missed:
        names = ", ".join(report.coverage.allowed)
        return (
            f"The results of {name} are as expected where they were checked: "
            f"{format_count(ok, 'record')}; "
            f"not checked, as allowed: {names}"
        )
    return f"The results of {name} are as expected: {format_count(ok, 'record')}"


def format_cut(report: ReconciliationResult) -> str:
    """Format when the consistent cut was taken, and how many input offsets are in it."""
    at = datetime.fromtimestamp(report.cut.taken_ms / 1000, UTC).isoformat(timespec="milliseconds")
    inputs = ", ".join(f"{topic} up to {count:,}" for topic, count in report.inputs.items())
    how = "" if report.cut.exact else "; not exact: its offsets name no positions of stores"
    return f"at the cut of {at} (offsets read: {inputs or 'none'}{how})"


def format_counts(checked: CheckedAccount) -> str:
    """Format how many records of a store or topic have each row verdict (ok, missing, ...)."""
    counts_by_verdict = {verdict: checked.counts.get(verdict, 0) for verdict in RowVerdict}
    return ", ".join(
        f"{count:,} {verdict}"
        for verdict, count in counts_by_verdict.items()
        if count or verdict is RowVerdict.OK
    )


def format_records_in_transit(report: ReconciliationResult) -> str:
    """Format how many records were in transit between sub-topologies; empty if none."""
    if report.in_flight_count is None:
        return "how many records were between sub-topologies can't be told"
    if not report.in_flight_count:
        return ""
    return f"{report.in_flight_count:,} records were between sub-topologies at the cut"


def print_report(
    report: ReconciliationResult, console: Console | None = None, rows_max: int = ROWS_MAX
) -> None:
    """Print the summary, and the first `rows_max` of the rows that are off.

    Each row is a line, so that positions can be copied from it whole, however narrow the terminal
    is.
    """
    console = console or Console()
    covered, verdict, *lines = _format_summary_lines(report)
    complete = not report.coverage.unchecked
    console.print(Text(covered, style="bold" if complete else "bold yellow"), soft_wrap=True)
    style = "bold green" if report.balanced else "bold red"
    console.print(Text(verdict, style=style), soft_wrap=True)
    rows = report.some_off(rows_max)
    for line in (*lines, *map(format_row, rows)):
        console.print(Text(line), soft_wrap=True)
    left = sum(report.count(each) for each in OFF_VERDICTS) - sum(row["count"] for row in rows)
    if left > 0:
        console.print(Text(f"and {left:,} more"))


def format_row(row: Row) -> str:
    """Format a row that is off as a line: verdict, key, expected, found, and the positions."""
    window = f" in [{row.window_start}, {row.window_end})" if row.window_start else ""
    times = f" ({row['count']:,} times)" if row["count"] > 1 else ""
    what = {
        RowVerdict.MISSING: f"expected {row.expected}",
        RowVerdict.UNEXPECTED: f"found {row.found}",
    }.get(RowVerdict(row.verdict), f"expected {row.expected}, found {row.found}")
    why = f", {row.why}" if row.why else ""
    return (
        f"{row.account}: {row.verdict} {row.key!r}{window}{times}: "
        f"{what}{why}{format_positions(row)}"
    )


def format_positions(row: Row) -> str:
    """Format the position of the actual row, and those of the inputs that went into it."""
    own_positions = [
        f"{at.topic}[{at.partition}]@{at.offset}" for at in row.offsets if at.role != "input"
    ]
    inputs = [f"{at.topic}[{at.partition}]@{at.offset}" for at in row.offsets if at.role == "input"]
    found = f"; at {_join_positions(own_positions, len(own_positions))}" if own_positions else ""
    if not inputs:
        return found
    return f"{found}; from {_join_positions(inputs, row.inputs or len(inputs))}"


def _join_positions(positions: list[str], count: int) -> str:
    """Join the first few positions, and count the others."""
    left = count - min(len(positions), _POSITIONS_SHOWN_MAX)
    more = f" and {left:,} more" if left > 0 else ""
    return ", ".join(positions[:_POSITIONS_SHOWN_MAX]) + more
