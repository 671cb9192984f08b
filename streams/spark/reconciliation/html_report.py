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

    from streams.spark.reconciliation.coverage import UncheckedAccount
    from streams.spark.reconciliation.result import CheckedAccount, ReconciliationResult

ROWS_MAX = 200
_BAR, _LABEL, _LINE = 560, 260, 34
"""Widths of a bar and of its name, height of a line, in pixels."""
_COLOURS = {
    RowVerdict.OK: "#3a8f5c",
    RowVerdict.MISSING: "#c98a1b",
    RowVerdict.UNEXPECTED: "#7a4fb5",
    RowVerdict.DIFFERENT: "#c0392b",
    RowVerdict.DOUBLED: "#9aa5b1",
}
_PART_MIN = 3.0
"""A single record among millions is seen too."""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #1d2430 }
h1 { font-size: 1.5rem } h1.balanced { color: #23774a } h1.off { color: #b03022 }
h1.unchecked { color: #96690f } p.covered { font-weight: bold }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25rem .6rem }
th { border-bottom: 2px solid #ccd3dc } td { border-bottom: 1px solid #e6eaf0 }
td { vertical-align: top; overflow-wrap: anywhere } td.number { text-align: right }
svg text { font: 13px system-ui, sans-serif; fill: #1d2430 } .light { color: #5b6675 }
"""


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
        _draw_chart(report),
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


def _draw_chart(report: ReconciliationResult) -> str:
    """Draw a bar for each store and topic as SVG, split by the verdicts on its records.

    An account that was not checked has an outline only.
    """
    accounts, missed = report.accounts.values(), report.coverage.unchecked
    count = len(accounts) + len(missed)
    width, height = _LABEL + _BAR + 10, _LINE * (count + 1)
    drawn = [_draw_bar(each, _LINE * number) for number, each in enumerate(accounts)]
    drawn += [_draw_outline(each, _LINE * n) for n, each in enumerate(missed, start=len(accounts))]
    return (
        f'<svg role="img" aria-label="records by verdict" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{"".join(drawn)}{_draw_legend(_LINE * count)}</svg>'
    )


def _draw_outline(account: UncheckedAccount, top_px: int) -> str:
    """Draw the outline of a store or topic that was not checked."""
    name = escape(f"? {account.name}")
    return (
        f'<text x="0" y="{top_px + 20}">{name}</text><rect x="{_LABEL}" y="{top_px + 6}" '
        f'width="{_BAR}" '
        'height="20" fill="none" stroke="#9aa5b1" stroke-dasharray="4">'
        f"<title>not checked: {escape(account.why)}</title></rect>"
    )


def _draw_bar(checked: CheckedAccount, top_px: int) -> str:
    """Draw the bar of a checked store or topic, split by the verdicts on its records."""
    mark = "✓" if checked.balanced else "✗"
    name = escape(f"{mark} {checked.name}")
    parts = [f'<text x="0" y="{top_px + 20}">{name}</text>']
    left = float(_LABEL)
    for verdict, length in _compute_bar_lengths(checked):
        count = checked.counts[verdict]
        parts.append(
            f'<rect x="{left:.1f}" y="{top_px + 6}" width="{length:.1f}" height="20" '
            f'fill="{_COLOURS[verdict]}"><title>{count:,} {verdict}</title></rect>'
        )
        left += length
    return "".join(parts)


def _compute_bar_lengths(checked: CheckedAccount) -> Iterator[tuple[RowVerdict, float]]:
    """Yield each row verdict (ok, missing, ...) that occurs, with the length of its bar part."""
    counts = {v: checked.counts[v] for v in RowVerdict if checked.counts.get(v, 0)}
    total = sum(counts.values())
    free_length = _BAR - _PART_MIN * len(counts)
    for verdict, count in counts.items():
        yield verdict, _PART_MIN + free_length * count / total


def _draw_legend(top_px: int) -> str:
    """Draw the legend: a colour for each row verdict (ok, missing, ...)."""
    step = _BAR // len(_COLOURS)
    return "".join(
        f'<rect x="{_LABEL + step * n}" y="{top_px + 10}" width="12" height="12" fill="{colour}"/>'
        f'<text x="{_LABEL + step * n + 18}" y="{top_px + 21}">{verdict}</text>'
        for n, (verdict, colour) in enumerate(_COLOURS.items())
    )


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
    """Render a table from its headings and its rendered rows."""
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join(f"<tr>{''.join(map(_render_cell, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _render_cell(cell: str | int | None) -> str:
    if isinstance(cell, int):
        return f'<td class="number">{cell:,}</td>'
    return f"<td>{escape(cell or '')}</td>"
