"""Test to which partitions of a repartition topic records go when it is given more of them."""

from __future__ import annotations

from typing import Any

from streams import App, Store, serdes, windows
from streams.common.partitioning import partition_for_key
from streams.runtime.tasks.repartition_counts import RepartitionCountCache
from tests.unit.streams.bound import BoundTask

TEXT: Any = {"key": serdes.string, "value": serdes.string}
KEYS = [f"k{number}" for number in range(20)]


def moved(**how: Any) -> App:
    app = App("a")
    app.stream("in", **TEXT).repartition(name="r", **how).to("out")
    return app


def written(app: App, keys: list[Any], *, grown_to: int) -> list[int]:
    """Return the partitions of records, of a topic that had two and has been given more."""
    task = BoundTask(app)
    [topic] = app.topology().repartition_topics
    task.partitions[topic], task.read_partitions[topic] = grown_to, 2
    for key in keys:
        task.pipe(key, "v", 1, topic="in")
    return task.chosen


def test_records_go_where_they_are_read_by_their_key() -> None:
    expected = [partition_for_key(key.encode(), 2) for key in KEYS]
    assert written(moved(), KEYS, grown_to=6) == expected


def test_a_partitioner_is_given_the_partitions_that_are_read() -> None:
    given: list[int] = []

    def choose(key: Any, value: Any, count: int) -> int:
        given.append(count)
        return count - 1

    assert set(written(moved(partitioner=choose), KEYS, grown_to=6)) == {1}
    assert set(given) == {2}


def test_windows_of_a_key_go_where_they_are_read() -> None:
    app = App("a")
    counts = app.stream("in", **TEXT).group_by_key().windowed_by(windows.tumbling(10))
    counts.count(store=Store.in_memory("c", caching=False)).to_stream().repartition(name="r").to(
        "out"
    )
    assert set(written(app, KEYS, grown_to=6)) == {0, 1}


def test_a_count_stays_what_it_was_at_the_first_write() -> None:
    counts, existing = RepartitionCountCache(), {"r": 2}
    assert counts.get_or_fetch_count("r", existing.__getitem__) == 2
    existing["r"] = 6
    assert counts.get_or_fetch_count("r", existing.__getitem__) == 2
