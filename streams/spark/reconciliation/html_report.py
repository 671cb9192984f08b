"""Render a report as an HTML page that needs no other file, with a chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from streams.spark.reconciliation.comparing import OFF_VERDICTS, RowVerdict
from streams.spark.reconciliation.text_report import (
    format_cut,
    format_headline,
    format_positions,
    format_records_in_transit,
)

if TYPE_CHECKING:
    from pyspark.sql import Row

    from streams.spark.reconciliation.result import CheckedAccount, ReconciliationResult

ROWS_MAX = 200
_COLOURS = {
    RowVerdict.OK: "#3a8f5c",
    RowVerdict.MISSING: "#c98a1b",
    RowVerdict.UNEXPECTED: "#7a4fb5",
    RowVerdict.DIFFERENT: "#c0392b",
    RowVerdict.DOUBLED: "#9aa5b1",
}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #1d2430 }
h1 { font-size: 1.5rem } h1.balanced { color: #23774a } h1.off { color: #b03022 }
h1.unchecked { color: #96690f } p.covered { font-weight: bold }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25rem .6rem }
th { border-bottom: 2px solid #ccd3dc } td { border-bottom: 1px solid #e6eaf0 }
td { vertical-align: top; overflow-wrap: anywhere } td.number { text-align: right }
.light { color: #5b6675 } .account { display: flex; margin: .4rem 0 }
.account b { flex: 0 0 16rem; overflow-wrap: anywhere }
.bar { display: flex; flex: 1; overflow: hidden } .bar.unchecked { outline: 1px dashed #9aa5b1 }
.bar i { min-width: 3px } .legend i { display: inline-block; width: .75rem; height: .75rem }
"""
"""A part of a bar is as long as its count, but wide enough that one record of millions is seen."""


def render_html(report: ReconciliationResult) -> str:
    """Render a report as a whole HTML page."""
    state, verdict = "unchecked", "not checked as asked"
    if report.is_off:
        state, verdict = "off", "not balanced"
    elif report.balanced:
        state, verdict = "balanced", "balanced"
    parts = [
        f'<p class="covered">{escape(str(report.coverage))}</p>',
        f'<h1 class="{state}">{escape(format_headline(report))}</h1>',
        f"<p>{escape(format_cut(report))}</p>",
        *([f"<p>{escape(line)}</p>"] if (line := format_records_in_transit(report)) else []),
        *(f"<p>{escape(str(each))}</p>" for each in report.dead_letters),
        *_draw_chart(report),
        "<h2>Accounts</h2>",
        _render_accounts(report.accounts.values()),
        *_render_refusals(report),
        *_render_rows_off(report),
        "<h2>The cut</h2>",
        _render_cut(report),
    ]
    title = escape(f"{report.application_id}: {verdict}")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _draw_chart(report: ReconciliationResult) -> Iterator[str]:
    """Yield a bar for each store and topic, split by the verdicts on its records, and a legend.

    An account that was not checked has an outline only.
    """
    for checked in report.accounts.values():
        counts = {v: checked.counts[v] for v in RowVerdict if checked.counts.get(v, 0)}
        parts = (
            f'<i style="flex-grow: {count}; background: {_COLOURS[verdict]}" '
            f'title="{count:,} {verdict}"></i>'
            for verdict, count in counts.items()
        )
        mark = "✓" if checked.balanced else "✗"
        yield _draw_bar(f"{mark} {checked.name}", f'<div class="bar">{"".join(parts)}</div>')
    for missed in report.coverage.unchecked:
        title = escape(f"not checked: {missed.why}")
        yield _draw_bar(f"? {missed.name}", f'<div class="bar unchecked" title="{title}"></div>')
    keys = (f'<i style="background: {colour}"></i> {v}' for v, colour in _COLOURS.items())
    yield f'<p class="legend">{" ".join(keys)}</p>'


def _draw_bar(label: str, bar: str) -> str:
    """Draw the bar of a store or topic behind its label."""
    return f'<div class="account"><b>{escape(label)}</b>{bar}</div>'


def _render_accounts(accounts: Iterable[CheckedAccount]) -> str:
    """Render the table of the checked stores and topics, with record counts by row verdict."""
    heads = ["account", "kind", *(str(verdict) for verdict in RowVerdict), "how it was computed"]
    rows = [
        [
            each.name,
            each.kind.value,
            *(each.counts.get(verdict, 0) for verdict in RowVerdict),
            each.account.method,
        ]
        for each in accounts
    ]
    return _render_table(heads, rows)


def _render_refusals(report: ReconciliationResult) -> Iterator[str]:
    """Yield tables of the unchecked stores and topics, and of the steps that are the reason."""
    missed = report.coverage.unchecked
    if missed:
        yield "<h2>Accounts that were not checked</h2>"
        rows = [
            [
                each.name,
                each.kind.value,
                "yes" if each.is_allowed else "no",
                each.why,
                "unknown" if each.record_count is None else f"{each.record_count:,}",
            ]
            for each in missed
        ]
        yield _render_table(["account", "kind", "allowed", "why", "records by offsets"], rows)
    accounts = {each.name for each in missed}
    others = [[each.name, each.why] for each in report.refused if each.name not in accounts]
    if others:
        yield "<h2>What keeps accounts from being checked</h2>"
        yield _render_table(["what", "why"], others)


def _render_rows_off(report: ReconciliationResult) -> Iterator[str]:
    """Yield a heading and the table of the first rows that are missing, unexpected or different."""
    some = report.some_off(ROWS_MAX)
    if not some:
        return
    off = sum(report.count(verdict) for verdict in OFF_VERDICTS)
    yield "<h2>What is off</h2>"
    if off > len(some):
        yield f'<p class="light">The first {len(some)} rows, of {off:,} records.</p>'
    heads = ["account", "verdict", "key", "window", "expected", "found", "where"]
    yield _render_table(heads, map(_list_cells, some))


def _list_cells(row: Row) -> list[str | None]:
    """List the cells of a row that is missing, unexpected or different."""
    window = f"{row.window_start} to {row.window_end}" if row.window_start else ""
    positions = format_positions(row).removeprefix("; ")
    why = f"{row.why}; " if row.why else ""
    where = f"{why}{positions}"
    return [row.account, row.verdict, row.key, window, row.expected, row.found, where]


def _render_cut(report: ReconciliationResult) -> str:
    """Render the table of the offsets and positions of the consistent cut."""
    cut = report.cut
    read = [("read", str(partition), at) for partition, at in sorted(cut.offsets.items())]
    kept = [
        (f"store {name}", f"{store.changelog}[{number}]", at)
        for name, store in sorted(cut.stores.items())
        for number, at in sorted(store.positions.items())
    ]
    written = [
        ("written", str(partition), at) for partition, at in sorted((cut.ends or {}).items())
    ]
    return _render_table(["what", "partition", "up to offset"], read + kept + written)


def _render_table(headings: Iterable[str], rows: Iterable[Sequence[str | int | None]]) -> str:
    """Render a table from its headings and the cells of its rows."""
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join(f"<tr>{''.join(map(_render_cell, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _render_cell(cell: str | int | None) -> str:
    if isinstance(cell, int):
        return f'<td class="number">{cell:,}</td>'
    return f"<td>{escape(cell or '')}</td>"
