"""Test stores read in ways of their own: versions, times to live, source topics, joins.

Some are not read at all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from streams import App, Store, serdes, until_time_limit
from streams.errors import ConfigError, UserError
from streams.spark.stores.store_options import options_for
from tests.brokers import Broker
from tests.processes import HANG_LIMIT_S
from tests.spark.one_store import Fed, One
from tests.spark.store_rows import START_MS, TEXT, load_with, millis, table


@pytest.fixture
def made(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Callable[..., One]:
    return lambda **settings: One(broker, unique("kind"), tmp_path / "state", **settings)


def test_versions_hold_from_their_time_to_the_next_however_they_came(
    made: Callable[..., One],
) -> None:
    one = made()
    one.app.table(one.topic, **TEXT, store=Store.versioned("prices", history=60_000))
    with one.app.start() as running:
        late: Fed = [("a", "10", 0), ("b", "1", 5), ("a", "30", 2000), ("a", "20", 1000)]
        cut = one.feed([*late, ("b", None, 3000), ("c", "x", 1), ("c", "y", 1)])
        store: Any = running.store("prices")
        assert table(one.load("prices", cut)) == {"a": "30", "c": "y"}
        rows = one.load("prices", cut, versioned="true")
        found = {
            (row["key"], millis(row["valid_from"])): (row["value"], millis(row["valid_to"]))
            for row in rows
        }
        assert found == {
            ("a", START_MS): ("10", START_MS + 1000),
            ("a", START_MS + 1000): ("20", START_MS + 2000),
            ("a", START_MS + 2000): ("30", None),
            ("b", START_MS + 5): ("1", START_MS + 3000),
            ("c", START_MS + 1): ("y", None),
        }
        for (key, begin_ms), (value, end_ms) in found.items():
            said = store.get(key, begin_ms)
            assert (said.value, said.timestamp_ms, said.valid_to_ms) == (value, begin_ms, end_ms)
        assert store.get("b") is None
        changelog = cut.stores["prices"].changelog
        admin = AdminClient({"bootstrap.servers": one.servers})
        [deleted] = admin.delete_records([TopicPartition(changelog, 0, 1)]).values()
        deleted.result(HANG_LIMIT_S)
        with pytest.raises(UserError, match="begins at offset 1, and was written again"):
            one.load("prices", cut, versioned="true")


def test_a_table_that_is_restored_from_its_own_topic(made: Callable[..., One]) -> None:
    one = made(topology_optimization="reuse.ktable.source.topics")
    one.app.table(one.topic, **TEXT, store="rows")
    with one.app.start() as running:
        cut = one.feed([("a", "1", 0), ("b", "2", 1), ("a", None, 2), ("c", "3", 3)])
        assert cut.stores["rows"].changelog == one.topic
        one.feed([("b", "later", 4)])
        assert table(one.load("rows", cut)) == {"b": "2", "c": "3"}
        assert dict(running.store("rows").all()) == {"b": "later", "c": "3"}
        without = options_for(one.app, "rows")
        with pytest.raises(ConfigError, match=r"no store 'rows'.*read_cut\(app\)"):
            load_with(without)


def test_values_that_have_had_their_time_are_not_in_the_table(made: Callable[..., One]) -> None:
    one = made()
    one.app.table(one.topic, **TEXT, store=Store.persistent("recent", ttl=1000))
    with one.app.start() as running:
        cut = one.feed([("a", "1", 0), ("b", "2", 500), ("c", "3", 1200)])
        wanted = dict(running.store("recent").all())
        assert wanted.keys() == {"b", "c"}
        assert table(one.load("recent", cut)) == wanted


def test_the_two_sides_of_a_join_with_the_sequence_numbers_of_equal_keys(
    made: Callable[..., One],
) -> None:
    one = made()
    stream = one.app.stream(one.topic, **TEXT)
    other = stream.map_values(str.upper)
    joined = stream.join(
        other, lambda left, right: left + right, within=1000, value=serdes.string, name="both"
    )
    joined.for_each(lambda key, value: None)
    names = [spec.name for sub in one.app.topology().subtopologies for spec in sub.stores]
    with one.app.start():
        cut = one.feed([("a", "x", 0), ("a", "y", 0), ("b", "z", 10)])
        found = sorted(
            (row["key"], row["value"], millis(row["window_start"]))
            for row in one.load(names[0], cut)
        )
    wanted = [("a", "x", START_MS), ("a", "y", START_MS), ("b", "z", START_MS + 10)]
    assert found in (wanted, [(key, value.upper(), at) for key, value, at in wanted])


def test_what_is_no_table_is_refused_by_name() -> None:
    app = App("refused", bootstrap_servers="127.0.0.1:1")
    rows = app.table("in", **TEXT, store=Store.persistent("rows", logged=False))
    app.global_table("rates", **TEXT, store="rates")
    rows.suppress(until_time_limit(1000), name="held").to_stream().to("out")
    with pytest.raises(ConfigError, match=r"'rows' has no changelog \(logged=False\)"):
        options_for(app, "rows")
    with pytest.raises(ConfigError, match=r"'rates' is a copy of the whole of topic 'rates'"):
        options_for(app, "rates")
    with pytest.raises(ConfigError, match=r"'held-store' holds what waits for its time"):
        options_for(app, "held-store")
    with pytest.raises(ConfigError, match=r"no store 'nope': it has held-store, rows"):
        options_for(app, "nope")
