"""List the places at which a result fails that a cache has held back until the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streams import App, Store, serdes
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.poison.operators import TEXT
from tests.unit.streams.runtime.poison.places import (
    ERRORS,
    SURROGATE,
    TEN_MB,
    TOO_LARGE,
    Place,
    replacing,
)
from tests.unit.streams.runtime.poison.running import IN, POISON

RESULTS: dict[str, Callable[[], Any]] = {
    "refused value": lambda: SURROGATE,
    "undeclared type": object,
    "too large": lambda: TOO_LARGE,
    "10 MB": lambda: TEN_MB,
}


def _write(kafka: Kafka, time_ms: int) -> None:
    """Write poison with a key of its own: a cache holds the last result of each key."""
    kafka.append_record(IN, b"k9", POISON.encode(), time_ms)


def _hold_back(finish: Callable[[Any], None]) -> Callable[[App], None]:
    def build(app: App) -> None:
        stream = app.stream("in", **TEXT, name="read")
        last = stream.group_by_key().reduce(lambda old, new: new, store=Store.in_memory("s"))
        finish(last.to_stream())
        stream.to("after")

    return build


def list_committing_places() -> Iterator[Place]:
    """Yield steps behind a cache: a function that raises, and sinks that refuse."""
    for error in ("ValueError", "StreamsError", "one that can't be shown"):
        mapping = replacing(ERRORS[error])
        build = _hold_back(lambda s, f=mapping: s.map_values(f, name="bad").to("out"))  # type: ignore[misc]
        name = f"a function raises {error}"
        yield Place("commit", "exception", name, build, _write, "processing")
    for kind, make in RESULTS.items():
        mapping = replacing(make)
        build = _hold_back(
            lambda s, f=mapping: s.map_values(f, value=serdes.string).to("out", name="bad")  # type: ignore[misc]
        )
        yield Place("commit", kind, "a sink behind a cache", build, _write, "production")
