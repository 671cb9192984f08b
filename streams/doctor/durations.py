"""Write durations in words, as findings have them."""

from __future__ import annotations

_UNITS = (("days", 86_400), ("h", 3_600), ("min", 60))


def format_duration(seconds: float) -> str:
    """Return a time in whole units of the largest of which it has two: `90 s`, `12 min`, `30 h`.

    It is rounded down, so that no time that is left is said to be longer; below 0 it is 0.
    """
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds // size:,.0f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"
