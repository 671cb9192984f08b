"""Test that stores of all kinds agree in one application, and that a planted change is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from pyspark.sql import functions as F  # noqa: N812

from state.keys import pack_session, pack_window
from streams import App, Store, serdes, windows
from streams.common.partitioning import partition_for_key
from streams.errors import ConfigError
from streams.spark import Cut, read_cut, reconcile
from streams.spark.reconciliation.comparing import RowVerdict
from streams.spark.reconciliation.inputs import Inputs
from streams.spark.reconciliation.report import Report
from tests.brokers import SETTINGS, EmbeddedProcess
from tests.changelog_offsets import account_for_state
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until
from tests.spark.store_rows import START_MS, TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.sampled(1, by="test")

PARTITIONS = 2
STEP_MS = 1_000
KEPT_MS = 10 * STEP_MS
CLICKS = [("a", "1", 0), ("b", "1", 100), ("a", "2", 900), ("b", "2", 1_500), ("a", "3", 5_000)]
LATE = ("a", "of another time", 4_000)
NEWEST = [("a", "4", 20_000), ("b", "3", 20_100)]
"""Windows before are kept no longer."""


class Kinds:
    """Represents an application with a store of each kind over two topics, drained by `run`."""

    def __init__(self, servers: str, name: str, state: Path) -> None:
        self.servers = servers
        self.clicks, self.prices = f"{name}-clicks", f"{name}-prices"
        with Client(servers) as client:
            create_topic(client, self.clicks, partitions=PARTITIONS)
            create_topic(
                client,
                self.prices,
                partitions=PARTITIONS,
                configs={"cleanup.policy": "compact"},
            )
        self.app = App(name, bootstrap_servers=servers, state_dir=state, commit_interval_ms=20)
        clicks = self.app.stream(self.clicks, **TEXT).group_by_key()
        kept = Store.persistent("windows", retention=KEPT_MS)
        clicks.windowed_by(windows.tumbling(STEP_MS, grace=0)).count(store=kept)
        clicks.windowed_by(windows.session(STEP_MS, grace=0)).count(store="sessions")
        clicks.windowed_by(windows.unlimited(0)).count(store="ever")
        clicks.count(store=Store.in_memory("counts"))
        self.app.table(self.prices, **TEXT, store="prices")
        versions = Store.versioned("versions", history=KEPT_MS)
        self.app.stream(self.clicks, **TEXT).to_table(store=versions)
        self._producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
        self._fed = 0

    def feed(self, topic: str, key: str, value: str | None, at_ms: int) -> None:
        self._producer.produce(topic, value, key, timestamp=START_MS + at_ms)
        self._fed += 1

    def plant(self, store: str, key: bytes, value: bytes | None, of: bytes) -> None:
        """Write into a changelog, in the partition where the records of the key `of` are."""
        topic = self.app.topology().restore_topic_of(store)
        partition = partition_for_key(of, PARTITIONS)
        self._producer.produce(topic, value, key, partition, timestamp=START_MS + 20_200)
        assert self._producer.flush(HANG_LIMIT_S) == 0
        account_for_state(self.servers, self.app.topology())

    def run(self) -> Cut:
        assert self._producer.flush(HANG_LIMIT_S) == 0
        with self.app.start():
            wait_until(self._is_drained, what="not all is processed")
        return read_cut(self.app)

    def _is_drained(self) -> bool:
        try:
            return sum(read_cut(self.app).offsets.values()) >= self._fed
        except ConfigError:  # nothing was committed yet
            return False


def beside(key: str) -> str:
    """Return another key of the same partition."""
    others = (f"{key}{number}" for number in range(100))
    partition = partition_for_key(key.encode(), PARTITIONS)
    return next(
        each for each in others if partition_for_key(each.encode(), PARTITIONS) == partition
    )


def key_of_another_partition(key: str) -> str:
    """Return a key that is in another partition than `key`."""
    others = (f"{key}{number}" for number in range(100))
    partition = partition_for_key(key.encode(), PARTITIONS)
    return next(
        each for each in others if partition_for_key(each.encode(), PARTITIONS) != partition
    )


def off(report: Report) -> set[tuple[str, str, str]]:
    return {(row.account, row.verdict, row.key) for row in report.some_off(100)}


@pytest.fixture
def servers() -> Iterator[str]:
    broker = EmbeddedProcess(SETTINGS)
    try:
        broker.start()
        yield broker.bootstrap_servers
    finally:
        broker.close()


def test_stores_of_all_kinds_balance_and_a_planted_change_of_each_is_named(
    spark: SparkSession, servers: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    kinds = Kinds(servers, unique("kinds"), tmp_path / "state")
    for click in [*CLICKS, LATE, *NEWEST]:
        kinds.feed(kinds.clicks, *click)
    for key, value in (("x", "1"), ("y", "1"), ("x", None), ("y", "2")):
        kinds.feed(kinds.prices, key, value, 0)
    kinds.run()

    with reconcile(spark, kinds.app, allow_unchecked=["versions"]) as report:
        assert report.balanced, report.summary()
        assert report.accounts.keys() == {"windows", "sessions", "ever", "counts", "prices"}
        assert [each.name for each in report.refused] == ["versions"]
        windows_of = {(row.key, row.found) for row in report.accounts["windows"].ok.collect()}
        assert windows_of >= {("a", 2), ("b", 1)}
        assert [row.key for row in report.accounts["prices"].ok.collect()] == ["y"]

    def expected(inputs: Inputs) -> dict[str, DataFrame]:
        clicks = inputs[kinds.clicks]
        start = F.window("timestamp", f"{STEP_MS} milliseconds").start.alias("window_start")
        in_time = clicks.where(F.col("value") != LATE[1])
        return {
            "windows": in_time.groupBy("key", start).agg(F.count("*").alias("value")),
            "versions": clicks.groupBy("key").agg(F.max_by("value", "timestamp").alias("value")),
        }

    two = serdes.int64.serialize(2)
    kinds.plant("windows", b"b" + pack_window(START_MS + 20_000, 0), two, b"b")
    kinds.plant("windows", b"a" + pack_window(START_MS, 0), None, b"a")  # had its time
    kinds.plant("windows", b"a" + pack_window(START_MS + 20_000, 0), None, b"a")
    kinds.plant("sessions", b"b" + pack_session(START_MS + 20_100, START_MS + 20_100), two, b"b")
    kinds.plant("ever", b"a" + pack_window(0, 0), two, b"a")
    kinds.plant("counts", b"a", two, b"a")
    kinds.plant("prices", b"x", b"1", b"x")
    kinds.plant("versions", b"a", b"4, changed", b"a")
    for topic, key in ((kinds.clicks, "a"), (kinds.clicks, "b"), (kinds.prices, "x")):
        kinds.feed(topic, beside(key), "1", 20_300)  # it commits where it has come to
    kinds.run()
    with reconcile(spark, kinds.app) as report:
        assert off(report) == {
            ("windows", "different", "b"),
            ("windows", "missing", "a"),
            ("sessions", "different", "b"),
            ("ever", "different", "a"),
            ("counts", "different", "a"),
            ("prices", "unexpected", "x"),
        }
        assert report.accounts["windows"].counts[RowVerdict.MISSING] == 1
    with reconcile(spark, kinds.app, expected=expected, accounts=["versions", "windows"]) as report:
        assert off(report) == {
            ("windows", "different", "b"),
            ("windows", "missing", "a"),
            ("versions", "different", "a"),
        }
        assert report.accounts["windows"].counts[RowVerdict.MISSING] == 1
        (changed,) = report.accounts["windows"].different.collect()
        told = [at.topic for at in changed.offsets if at.role == "input"]
        assert told == [kinds.clicks] * changed.inputs


def test_a_window_row_that_only_another_partition_would_have_expired_is_missing(
    spark: SparkSession, servers: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """Delete the row of a window that only another partition's time would have expired.

    One partition has gone on for twice the retention; of the other the first window is kept.
    """
    kinds = Kinds(servers, unique("apart"), tmp_path / "state")
    ahead = key_of_another_partition("a")
    for click in [("a", "1", 0), ("a", "2", 5_000), (ahead, "1", 0), (ahead, "2", 20_000)]:
        kinds.feed(kinds.clicks, *click)
    kinds.run()
    kinds.plant("windows", b"a" + pack_window(START_MS, 0), None, b"a")
    kinds.feed(kinds.clicks, beside("a"), "3", 5_100)  # it commits where it has come to
    kinds.run()

    def expected(inputs: Inputs) -> DataFrame:
        start = F.window("timestamp", f"{STEP_MS} milliseconds").start.alias("window_start")
        clicks = inputs[kinds.clicks].groupBy("key", start)
        answer: DataFrame = clicks.agg(F.count("*").alias("value"))
        return answer

    with reconcile(spark, kinds.app, expected=expected, accounts=["windows"]) as report:
        assert off(report) == {("windows", "missing", "a")}
