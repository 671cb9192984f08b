"""Write a number with its noun, in the singular for one."""

from __future__ import annotations


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun, such as "1 record" and "1,000 records".

    `plural` is the noun with an s if it is not given.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
