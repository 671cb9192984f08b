"""Give Spark the rows of an application in a TopologyTestDriver: what it read, what it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from state.keys import SESSION_SUFFIX_BYTES, WINDOW_SUFFIX_BYTES, unpack_session, unpack_window
from streams.app import App
from streams.common.topic_partitions import Partition
from streams.graph.nodes import StoreKind, StoreSpec
from streams.spark.reconciliation.accounts import Account, AccountKind
from streams.spark.reconciliation.derivation.derive import DerivedAccounts, derive_accounts
from streams.testing import TopologyTestDriver

READ = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp BIGINT"
Row = tuple[Any, ...]


class Ledgers:
    """Compares what Spark expects with what the application in `driver` holds."""

    def __init__(self, spark: SparkSession, app: App, driver: TopologyTestDriver) -> None:
        self._spark = spark
        self._app = app
        self._driver = driver
        subs = app.topology().subtopologies
        self._specs = {spec.name: spec for sub in subs for spec in sub.stores}

    def messages(self, topic: str) -> list[Any]:
        cluster = self._driver._cluster
        partitions = cluster.partitions_of(topic) if topic in cluster.partition_counts else []
        return [m for p in partitions for m in cluster.logs[Partition(*p)].read_committed(0)]

    def records(self, topic: str) -> DataFrame:
        rows = [
            (m.key(), m.value(), topic, m.partition(), m.offset(), m.timestamp()[1])
            for m in self.messages(topic)
        ]
        return self._spark.createDataFrame(rows, READ)

    def derived(self, recomputed: Mapping[str, int] | None = None) -> DerivedAccounts:
        return derive_accounts(self._app, self.records, recomputed_partition_counts=recomputed)

    def off(self, account: Account) -> tuple[Counter[Row], Counter[Row]]:
        """Return the missing rows and the unexpected ones.

        Rows are key, window, value (and timestamp, where the account has it). Something has to be
        expected.
        """
        width = 5 if account.compares_timestamps else 4
        expected = Counter(tuple(r)[:width] for r in account.expected.collect())
        assert expected, f"{account.name}: nothing is expected"
        actual = Counter(row[:width] for row in self.actual(account))
        return expected - actual, actual - expected

    def balance(self, derived: DerivedAccounts) -> set[str]:
        """Check that every account is as expected, and return their names."""
        for account in derived.accounts:
            assert self.off(account) == (Counter(), Counter()), account
        return {account.name for account in derived.accounts}

    def actual(self, account: Account) -> list[Row]:
        """Return the rows that there are."""
        if account.kind is AccountKind.STREAM:
            messages = self.messages(account.name)
            return [(bytes_(m.key()), None, None, m.value(), m.timestamp()[1]) for m in messages]
        spec = self._specs[account.name] if account.kind is AccountKind.STORE else None
        topic = account.name if spec is None else self._app.topology().restore_topic_of(spec.name)
        last = {m.key(): m for m in self.messages(topic)}
        return [
            (*windowed(key, spec), m.value(), max(m.timestamp()[1], 0))
            for key, m in last.items()
            if m.value() is not None
        ]


def bytes_(key: Any) -> Any:
    return None if key is None else bytes(key)


def windowed(key: bytes, spec: StoreSpec | None) -> Row:
    if spec is not None and spec.kind is StoreKind.WINDOW:
        start, _ = unpack_window(key[-WINDOW_SUFFIX_BYTES:])
        end = min(start + (spec.window_size_ms or 0), 2**63 - 1)
        return key[:-WINDOW_SUFFIX_BYTES], start, end
    if spec is not None and spec.kind is StoreKind.SESSION:
        end, start = unpack_session(key[-SESSION_SUFFIX_BYTES:])
        return key[:-SESSION_SUFFIX_BYTES], start, end
    return key, None, None
