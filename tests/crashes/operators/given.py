"""Define the applications' input, and tell their outputs apart.

Every result goes to one topic, as JSON, under the key `<operator> <key>`. Of some operators each
result must come once, and be the truth; of others the last of each key must.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from streams import App, serdes

STEP_MS = 20
BATCH = 40
KEYS = 20
GRACE_MS = 10 * BATCH * STEP_MS
"""Batches are not far apart when they are read: a crash keeps one back, no more."""
SEEN = "seen"
"""The results of an operator that passes each record on: they say how far it has come."""
CLOSING = "close"
"""Keys of records that only move time on begin so."""

Contents = dict[str, Any]
JSON: dict[str, Any] = {"key": serdes.string, "value": serdes.json}


class Sent(NamedTuple):
    """Holds a record of the input; `topic` is the end of its topic's name."""

    topic: str
    key: str
    value: Any
    timestamp_ms: int


class Truth(NamedTuple):
    """Holds the expected results by operator, then by key.

    A result is a value, or for operators `in_any_order` all values, sorted.
    """

    once: Mapping[str, Contents]
    """Each result has come exactly once."""
    last: Mapping[str, Contents]
    """The last result of a key; one that was taken away isn't there."""
    in_any_order: Mapping[str, dict[str, list[Any]]]
    """Every result has come as often as it is there."""


class Application(Protocol):
    """Describes a module of this package that defines an application."""

    TOPICS: Sequence[str]
    """Input topics, by the ends of their names."""
    PROGRESS: Sequence[str]
    """Those whose records are SEEN, each once."""
    HASHED: Sequence[str]
    """Those in whose partitions keys are as Kafka's own clients put them: what is looked up by a
    foreign key must be. The others have partitions of ours, which no client would choose."""

    def build(self, application_id: str, source: str, target: str, **settings: Any) -> App: ...

    def first(self, begin_ms: int) -> list[Sent]:
        """Return the records that are there before anything else."""
        ...

    def batch(self, begin: int, begin_ms: int) -> list[Sent]:
        """Return the records that have the numbers from `begin` on."""
        ...

    def truth(self, sent: Sequence[Sent]) -> Truth: ...


def results(target: str, operator: str) -> Callable[[Any], None]:
    """Return a function that writes a stream as the results of an operator."""

    def rekeyed(key: Any, value: Any) -> str:
        return f"{operator} {key}"

    def write(stream: Any) -> None:
        stream.select_key(rekeyed, key=serdes.string).to(target, value=serdes.json)

    return write
