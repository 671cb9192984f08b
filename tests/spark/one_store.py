"""Run an application of one topic and one partition, and read its stores as of a cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from streams import App
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.spark import Cut, read_cut
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.stores.store_options import options_for
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until
from tests.spark.store_rows import START_MS, load_with

Fed = list[tuple[str, str | None, int]]


class One:
    """Represents an application that reads one topic of one partition.

    Times of records are from `begun_ms` on.
    """

    def __init__(
        self, broker: Broker, name: str, state: Path, *, begun_ms: int = START_MS, **settings: Any
    ) -> None:
        self.topic = f"{name}-in"
        self.servers = broker.bootstrap_servers
        self._begun_ms = begun_ms
        with Client(self.servers) as client:
            create_topic(client, self.topic, partitions=1)
        self.app = App(
            name,
            bootstrap_servers=self.servers,
            state_dir=state,
            commit_interval_ms=20,
            **settings,
        )

    def feed(self, records: Fed) -> Cut:
        """Write key, value and time of each record; return a cut when all are processed."""
        producer = Producer({"bootstrap.servers": self.servers})
        for key, value, at_ms in records:
            producer.produce(self.topic, value, key, timestamp=self._begun_ms + at_ms)
        assert producer.flush(HANG_LIMIT_S) == 0
        where = Partition(self.topic, 0)
        end = BrokerAccess(self.servers).create_admin().fetch_latest_offsets([where])[where]
        found: list[Cut] = []

        def is_done() -> bool:
            try:
                found.append(read_cut(self.app))
            except ConfigError:  # nothing was committed yet
                return False
            return found[-1].offsets[where] >= end

        wait_until(is_done, what="not all is processed")
        return found[-1]

    def load(self, store: str, cut: Cut, **more: str) -> list[dict[str, Any]]:
        return load_with(options_for(self.app, store) | {"cut": cut.to_json()} | more)
