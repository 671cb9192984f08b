"""Test the tables that the benchmarks write."""

from __future__ import annotations

import pytest

from benchmarks.figures import CPU, KINDS, RATE, Figures, table


@pytest.mark.parametrize(
    ("unit", "ours", "theirs", "better_by"),
    [(RATE, 200.0, 100.0, "2.00 x"), (CPU, 2.0, 5.0, "2.50 x"), (CPU, 0.0, 5.0, "")],
)
def test_how_much_better_ours_is_where_that_can_be_said(
    unit: str, ours: float, theirs: float, better_by: str
) -> None:
    figures = Figures()
    for kind, value in zip(KINDS, (ours, theirs), strict=True):
        figures.add("a line", unit, kind, value)
    assert list(table(figures, "a title").columns[-1].cells) == [better_by]
