"""Write a number with its noun, in the singular for one, and texts that repeat once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun, such as "1 record" and "1,000 records".

    `plural` is the noun with an s if it is not given.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def join_distinct(texts: Iterable[str]) -> str:
    """Return texts once each in their order, with the number of those that repeat.

    Such as "timed out (5 times), fenced".
    """
    counts = Counter(texts)
    return ", ".join(
        text if count == 1 else f"{text} ({count:,} times)" for text, count in counts.items()
    )
