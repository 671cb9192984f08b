"""Test that a versioned store is restored with all of its history, however old its times are."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from streams import App, Store, serdes
from streams.errors import StreamsError
from streams.processes.running import RunningApp
from streams.runtime.changelogs import version_expiry
from tests.brokers import IN_CI, Broker
from tests.changelog_offsets import account_for_changelogs
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

FRIDAY_MS = 1_600_000_000_000
"""A moment of 2020: compaction by the wall clock may take whatever is of that time."""
SECOND_MS = 1_000
HISTORY_MS = 600 * SECOND_MS
TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


class Rates:
    """Runs an application whose orders find the rate of their time, on one machine or another."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self._broker, self._directory = broker, directory
        self.name = f"rates-{uuid.uuid4().hex[:8]}"
        self.rates, self.orders, self.out = (f"{self.name}-{n}" for n in ("rates", "orders", "out"))
        self.changelog = f"{self.name}-rates-changelog"
        self.admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for topic in (self.rates, self.orders, self.out):
            self.create(topic, {"retention.ms": "-1"})

    def create(self, topic: str, settings: dict[str, str]) -> None:
        for made in self.admin.create_topics([NewTopic(topic, 1, 1, config=settings)]).values():
            made.result(HANG_LIMIT_S)

    @contextmanager
    def running_on(self, machine: str, **settings: Any) -> Iterator[RunningApp]:
        app = App(
            self.name,
            bootstrap_servers=self._broker.bootstrap_servers,
            state_dir=self._directory / machine,
            repartition_purge_interval_ms=100,
            **settings,
        )
        rates = app.table(self.rates, **TEXT, store=Store.versioned("rates", history=HISTORY_MS))
        orders = app.stream(self.orders, **TEXT)
        orders.left_join(rates, lambda order, rate: f"{order} at {rate}").to(
            self.out, value=serdes.string
        )
        running = app.start()
        try:
            yield running
        finally:
            running.close()

    def write(self, topic: str, key: str, value: str, seconds: int) -> None:
        """Write a record whose time is so many seconds after the first moment."""
        time_ms = FRIDAY_MS + seconds * SECOND_MS
        self._producer.produce(topic, value.encode(), key.encode(), timestamp=time_ms)
        assert self._producer.flush(HANG_LIMIT_S) == 0

    def order(self, number: int, key: str, seconds: int, rate: str) -> None:
        """Write an order, wait until it is committed, and check the rate that it has found."""
        end = self.find_offset(self.out, OffsetSpec.latest())
        self.write(self.orders, key, f"{number}", seconds)
        wait_until(  # the answer and the marker of its transaction
            lambda: self.find_offset(self.out, OffsetSpec.latest()) > end + 1,
            what=f"order {number}",
        )
        [answer] = records(self._broker.bootstrap_servers, self.out, 1, first={0: end})
        assert answer.value().decode() == f"{number} at {rate}"

    def find_offset(self, topic: str, which: OffsetSpec) -> int:
        [found] = self.admin.list_offsets({TopicPartition(topic, 0): which}).values()
        offset: int = found.result(HANG_LIMIT_S).offset
        return offset

    def await_rewrite(self) -> None:
        wait_until(
            lambda: self.find_offset(self.changelog, OffsetSpec.earliest()) > 0,
            what="the changelog is written again",
        )

    def changelog_settings(self) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, self.changelog)
        [settings] = self.admin.describe_configs([resource]).values()
        found = settings.result(HANG_LIMIT_S)
        return {name: found[name].value for name in ("cleanup.policy", "retention.ms")}

    def left_in_changelog(self) -> list[tuple[str, str]]:
        found = records(self._broker.bootstrap_servers, self.changelog, 1)
        return [(m.key().decode(), m.value().decode()) for m in found]


KEPT = {"cleanup.policy": "delete", "retention.ms": "-1"}


def test_a_history_that_was_written_again_is_restored_on_a_new_machine(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_expiry, "REWRITE_RECORDS_MIN", 4)
    world = Rates(broker, tmp_path)
    with world.running_on("first"):
        for key, value, seconds in (
            ("old", "9", -2_000_000),
            ("ann", "1", 10),
            ("ann", "3", 30),
            ("ann", "2", 20),
        ):
            world.write(world.rates, key, value, seconds)
        world.order(0, "ann", 35, "3")
        for number in range(1, 7):
            world.write(world.rates, "bob", f"{number}", 40)
            world.order(number, "bob", 45, f"{number}")
        world.await_rewrite()
    assert world.changelog_settings() == KEPT
    with world.running_on("second"):
        for number, (key, seconds, rate) in enumerate(
            [("ann", 15, "1"), ("ann", 25, "2"), ("ann", 50, "3"), ("old", 0, "9")]
        ):
            world.order(100 + number, key, seconds, rate)


def test_a_changelog_that_the_wall_clock_compacted_is_refused_and_then_kept(
    broker: Broker, tmp_path: Path
) -> None:
    world = Rates(broker, tmp_path)
    world.create(  # as older settings may say, and for a cleaner that waits for nothing else
        world.changelog,
        {
            "cleanup.policy": "compact",
            "min.compaction.lag.ms": str(HISTORY_MS + 86_400_000),
            "min.cleanable.dirty.ratio": "0",
            "segment.ms": "1000",
        },
    )
    for key, value, seconds in (
        ("ann", "1", 10),
        ("ann", "3", 30),
        ("ann", "2", 20),
        ("filler", "1", 40),
        ("filler", "2", 500),
    ):
        world.write(world.changelog, key, value, seconds)
    wait_until(
        lambda: ("ann", "3") not in world.left_in_changelog(), what="the latest rate is lost"
    )
    account_for_changelogs(
        broker.bootstrap_servers, world.name, world.rates, {"rates": world.changelog}
    )
    account_for_changelogs(
        broker.bootstrap_servers, world.name, world.orders, {"rates": world.changelog}
    )
    with (  # closing the application raises what has ended its thread
        pytest.raises(StreamsError, match=r"was compacted by the wall clock, .* stream time was"),
        world.running_on("first") as running,
    ):
        wait_until(lambda: running.state == "ERROR", what="the thread ends")
    assert world.changelog_settings() == KEPT
    with world.running_on("first", changelog_out_of_range="earliest"):
        world.order(0, "ann", 35, "2")
        world.await_rewrite()
    with world.running_on("second"):
        world.order(1, "ann", 35, "2")
