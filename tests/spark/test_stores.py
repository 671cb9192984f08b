"""Test that a store as a table, as of a cut, holds what the application itself says."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from state.windowed import Windowed
from streams import App, Store, windows
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.processes.running import RunningApp
from streams.spark import Cut, read_cut
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.stores.store_options import options_for
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until
from tests.sampling import draw_seed
from tests.spark.store_rows import START_MS, TEXT, load_with, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(2, by="test")

PARTITIONS = 2


@dataclass
class Kinds:
    """Represents an application with a store of each kind, and what feeds it."""

    app: App
    events: str
    rows: str
    producer: Producer
    servers: str

    @classmethod
    def make(cls, servers: str, name: str, state: Path, **settings: Any) -> Kinds:
        events, rows = f"{name}-events", f"{name}-rows"
        with Client(servers) as client:
            for topic in (events, rows):
                create_topic(client, topic, partitions=PARTITIONS)
        app = App(
            name, bootstrap_servers=servers, state_dir=state, commit_interval_ms=50, **settings
        )
        stream = app.stream(events, **TEXT)
        by_key = stream.group_by_key()
        by_key.count(store=Store.in_memory("counts"))
        tumbling = Store.window("tumbling", size=1000, retention=5000)
        by_key.windowed_by(windows.tumbling(1000)).count(store=tumbling)
        by_key.windowed_by(windows.unlimited()).count(store="for-ever")
        by_key.windowed_by(windows.session(300, grace=2000)).count(store="sessions")
        app.table(rows, **TEXT, store="rows")
        return cls(app, events, rows, Producer({"bootstrap.servers": servers}), servers)

    def send(self, topic: str, key: str, value: str | None, at_ms: int) -> None:
        self.producer.produce(topic, value, key, timestamp=START_MS + at_ms)

    def feed(self, of: random.Random, count: int, begin_ms: int = 0) -> None:
        """Write events of rising times, some late, and rows that come, change and go."""
        for number in range(count):
            at_ms = begin_ms + number * 97 - of.choice([0, 0, 0, 1500, 9000])
            self.send(self.events, f"k{of.randrange(7)}", "x", max(at_ms, 0))
            value = None if of.random() < 0.3 else f"v{number}"
            self.send(self.rows, f"r{of.randrange(9)}", value, number)
        for number, last in enumerate((None, "a", "b", "c", "d")):  # one that is gone, some not
            self.send(self.rows, f"r{number}", last, count + number)
        assert self.producer.flush(HANG_LIMIT_S) == 0

    def drained(self) -> Cut:
        """Return a cut in which all is that was fed."""
        parts = [Partition(t, n) for t in (self.events, self.rows) for n in range(PARTITIONS)]
        ends = BrokerAccess(self.servers).create_admin().fetch_latest_offsets(parts)
        found: list[Cut] = []

        def is_done() -> bool:
            try:
                found.append(read_cut(self.app))
            except ConfigError:  # nothing was committed yet
                return False
            return all(found[-1].offsets.get(p, 0) >= end for p, end in ends.items())

        wait_until(is_done, what=lambda: f"{found[-1:]}, not {ends}")
        return found[-1]


@pytest.fixture
def kinds(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Kinds:
    return Kinds.make(broker.bootstrap_servers, unique("kinds"), tmp_path / "state")


@contextmanager
def fed(kinds: Kinds, count: int = 150) -> Iterator[tuple[RunningApp, Cut]]:
    seed = draw_seed("kinds of stores")
    print(f"{seed=}")
    with kinds.app.start() as running:
        kinds.feed(random.Random(seed), count)
        yield running, kinds.drained()


def load(kinds: Kinds, store: str, **more: Any) -> list[dict[str, Any]]:
    return load_with(options_for(kinds.app, store) | {n: str(v) for n, v in more.items()})


def windowed(window: Windowed[Any]) -> tuple[Any, int, int | None]:
    end_ms = window.end_ms
    return window.key, window.start_ms, None if end_ms == 2**63 - 1 else end_ms


def test_a_table_is_what_the_running_application_says(kinds: Kinds) -> None:
    with fed(kinds) as (running, cut):
        options = {"cut": cut.to_json()}
        for store in ("counts", "rows"):
            wanted: dict[Any, Any] = dict(running.store(store).all())
            assert len(wanted) > 3
            assert table(load(kinds, store, **options)) == wanted, store
        for store in ("tumbling", "sessions", "for-ever"):
            wanted = {windowed(key): value for key, value in running.store(store).all()}
            assert len(wanted) > 3
            assert table(load(kinds, store, **options)) == wanted, store


def test_a_cut_stays_what_it_was_while_the_application_runs_on(kinds: Kinds) -> None:
    with fed(kinds) as (running, cut):
        wanted = dict(running.store("rows").all())
        kinds.feed(random.Random(1), 100, begin_ms=20_000)
        kinds.send(kinds.rows, "r0", "later", 5)
        assert kinds.producer.flush(HANG_LIMIT_S) == 0
        kinds.drained()
        later = dict(running.store("rows").all())
        assert later != wanted
        assert table(load(kinds, "rows", cut=cut.to_json())) == wanted
        assert table(load(kinds, "rows")) == later
        records = load(kinds, "rows", cut=cut.to_json(), content="changelog")
        last: dict[str, Any] = {}
        for row in sorted(records, key=lambda row: (row["partition"], row["offset"])):
            assert row["offset"] < cut.stores["rows"].positions[row["partition"]]
            last[row["key"]] = row["value"]
        assert None in last.values()
        assert {key: value for key, value in last.items() if value is not None} == wanted


def test_a_store_in_spark(spark: SparkSession, kinds: Kinds) -> None:
    with fed(kinds, 40) as (running, _):
        options = options_for(kinds.app, "tumbling")
        frame = spark.read.format("millrace").options(**options).load()
        sums = {row[0]: row[1] for row in frame.groupBy("key").sum("value").collect()}
        wanted: dict[str, int] = {}
        for window, count in running.store("tumbling").all():
            wanted[window.key] = wanted.get(window.key, 0) + count
        assert sums == wanted
        with pytest.raises(Exception, match=r"has no store 'nope'.*it has counts, for-ever, rows"):
            spark.read.format("millrace").options(**options | {"store": "nope"}).load().collect()
