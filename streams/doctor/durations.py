"""Write durations in words, as findings have them."""

from __future__ import annotations


def format_duration(seconds: float) -> str:
    """Return a time in the largest unit of which there are two or more."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"
