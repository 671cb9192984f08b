"""Counts words; `bad` becomes a dead letter, and at `hang` the application's function hangs."""

from __future__ import annotations

import time

from millrace import App, serdes

_HANG_S = 600

_OFTEN = {"statistics.interval.ms": 1_000}

app = App(
    "words",
    commit_interval_ms=100,
    processing_handler="dead_letter:words-dead",
    consumer=_OFTEN,
    producer=_OFTEN,
)


def check(word: str) -> str:
    """Return a word. Raises ValueError for `bad`, and does not return for `hang`."""
    if word == "bad":
        raise ValueError(word)
    if word == "hang":
        time.sleep(_HANG_S)
    return word


words = app.stream("words-in", key=serdes.string, value=serdes.string).map_values(check)
words.group_by_key().count(store="counts").to_stream().to("words-out")
