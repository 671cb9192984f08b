"""Build the topologies that are measured; `java/OneInput.java` and `java/Joins.java` have the same.

What is in the values of the inputs, by position, is in `benchmarks.peers.inputs`. Every update goes
on: no store holds results back until the commit, as Kafka Streams' don't with a cache of 0 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from streams import App, Store, serdes, until_window_closes, windows

WINDOW_MS, GAP_MS, WITHIN_MS = 5_000, 5_000, 50
_TEXT: Any = {"key": serdes.string, "value": serdes.string}


class Topics(NamedTuple):
    """Names the topics of an application; `right` is empty if it has one input."""

    left: str
    right: str
    output: str


def _map_values(app: App, topics: Topics) -> None:
    _read_stream(app, topics.left).map_values(str.upper).to(topics.output)


def _count(app: App, topics: Topics) -> None:
    records = _read_stream(app, topics.left)
    records.group_by_key().count(store=_create_store("counts")).to_stream().to(topics.output)


def _count_by_new_key(app: App, topics: Topics) -> None:
    records = _read_stream(app, topics.left)
    groups = records.group_by(choose_group, key=serdes.string)
    groups.count(store=_create_store("counts")).to_stream().to(topics.output)


def _count_in_windows(app: App, topics: Topics) -> None:
    _read_window_counts(app, topics).to_stream().to(topics.output)


def _suppress_windows(app: App, topics: Topics) -> None:
    counts = _read_window_counts(app, topics)
    counts.suppress(until_window_closes()).to_stream().to(topics.output)


def _count_in_sessions(app: App, topics: Topics) -> None:
    sessions = _read_stream(app, topics.left).group_by_key().windowed_by(windows.session(GAP_MS))
    sessions.count(store=_create_store("counts")).to_stream().to(topics.output)


def _join_stream_with_table(app: App, topics: Topics) -> None:
    rights = _read_table(app, topics.right, "rights")
    joined = _read_stream(app, topics.left).left_join(rights, join_values, value=serdes.string)
    joined.to(topics.output)


def _join_streams(app: App, topics: Topics) -> None:
    rights = _read_stream(app, topics.right)
    lefts = _read_stream(app, topics.left)
    joined = lefts.join(rights, join_values, within=WITHIN_MS, value=serdes.string)
    joined.to(topics.output)


def _join_tables(app: App, topics: Topics) -> None:
    lefts = _read_table(app, topics.left, "lefts")
    rights = _read_table(app, topics.right, "rights")
    lefts.join(rights, join_values, value=serdes.string).to_stream().to(topics.output)


def _join_by_foreign_key(app: App, topics: Topics) -> None:
    lefts = _read_table(app, topics.left, "lefts")
    rights = _read_table(app, topics.right, "rights")
    joined = lefts.join(rights, join_values, foreign_key=extract_foreign_key, value=serdes.string)
    joined.to_stream().to(topics.output)


TOPOLOGIES: dict[str, Callable[[App, Topics], None]] = {
    "map": _map_values,
    "count": _count,
    "window": _count_in_windows,
    "rekey": _count_by_new_key,
    "session": _count_in_sessions,
    "suppress": _suppress_windows,
    "stream-table": _join_stream_with_table,
    "stream-stream": _join_streams,
    "table-table": _join_tables,
    "foreign-key": _join_by_foreign_key,
}


def choose_group(_key: str, value: str) -> str:
    """Return the key by which the re-keyed records are counted: one of 10,000."""
    return "group-" + value[6:10]


def extract_foreign_key(_key: str, value: str) -> str:
    """Return the key of the right table's row that belongs to a value: one of 1,000."""
    return "key-0000" + value[17:20]


def join_values(left: str, right: str | None) -> str:
    """Return the result of a join: which record of either side it was made of."""
    return left[:10] + "|" + ("none" if right is None else right[:10])


def _read_stream(app: App, topic: str) -> Any:
    return app.stream(topic, **_TEXT)


def _read_table(app: App, topic: str, store: str) -> Any:
    return app.table(topic, **_TEXT, store=_create_store(store))


def _read_window_counts(app: App, topics: Topics) -> Any:
    windowed = _read_stream(app, topics.left).group_by_key()
    return windowed.windowed_by(windows.tumbling(WINDOW_MS)).count(store=_create_store("counts"))


def _create_store(name: str) -> Store:
    return Store.persistent(name, caching=False)
