"""Test what days without records, and a stop for longer than offsets are kept, do to applications.

The embedded broker and its applications have a clock that is shifted by days. Apache Kafka's clock
is the machine's: there the retentions are short, records bear times of a month ago, and offsets,
which Kafka keeps for a minute at least, are committed again with a retention of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from coordinator.errors import Code
from streams import App, serdes, windows
from streams.errors import StreamsError
from tests.brokers import SETTINGS, Broker, EmbeddedProcess, choose_own
from tests.clock_shift import DAY_MS, ClockShift
from tests.conformance.commits import commit
from tests.conformance.transactions import list_transactions
from tests.conformance.wire import Client
from tests.kafka.server import RealKafka
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

pytestmark = pytest.mark.sampled(1, by="broker")

CHECKS = {
    **SETTINGS,
    "log.retention.check.interval.ms": "200",
    "offsets.retention.check.interval.ms": "200",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
}
SOON = {"log.initial.task.delay.ms": "200", "transactional.id.expiration.ms": "5000"}
"""Of Kafka, which first looks for old records half a minute after its start, and on which no days
pass for transactional ids."""
KEPT = {"retention_ms": "-1"}
FOR_A_DAY = {"retention_ms": str(DAY_MS)}
WINDOW_MS = 300_000


class Days:
    """Represents a broker of its own, on which days pass; applications have its clock."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.clock = ClockShift(directory / "shift")
        self.broker: Broker
        if kind == "kafka":
            self.broker = RealKafka({**CHECKS, **SOON})
        else:
            self.broker = EmbeddedProcess(CHECKS, options=self.clock.broker_options)
        self.broker.start()
        self.servers = self.broker.bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": self.servers})

    @property
    def is_shifted(self) -> bool:
        return self.broker.kind == "embedded"

    @property
    def now_ms(self) -> int:
        """Return the wall clock of the broker."""
        return self.clock.now_ms()

    def create(self, topic: str, **settings: str) -> None:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        [made] = self.admin.create_topics([NewTopic(topic, 1, 1, config=config)]).values()
        made.result(HANG_LIMIT_S)

    def set_retention(self, topic: str, retention_ms: int) -> None:
        entry = ConfigEntry(
            "retention.ms", str(retention_ms), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        [altered] = self.admin.incremental_alter_configs([resource]).values()
        altered.result(HANG_LIMIT_S)

    def pass_days(self, days: int, expiring: str) -> None:
        """Let days pass, until the records of the topic `expiring` are gone."""
        if self.is_shifted:
            self.clock.pass_days(days)
        else:
            self.set_retention(expiring, 1)
        wait_until(lambda: self._is_emptied(expiring), what=f"{expiring} expires")
        if not self.is_shifted:
            self.set_retention(expiring, 7 * DAY_MS)

    def expire_offsets(self, group: str, topic: str) -> None:
        """Let a group stay empty until its offsets have expired."""
        if self.is_shifted:
            self.create("canary")
            self.write("canary", "ann", 1)
            self.pass_days(8, expiring="canary")
        else:
            with self._reader(group) as consumer:
                [found] = consumer.committed([TopicPartition(topic, 0)], timeout=10)
            same = {
                "partition_index": 0,
                "committed_offset": found.offset,
                "committed_metadata": found.metadata,
            }
            with Client(self.servers) as client:  # it is refused while the group has a member
                wait_until(
                    lambda: (
                        set(commit(client, 4, group, {topic: [same]}, retention_time=1).values())
                        == {Code.NONE}
                    ),
                    what="the group is empty",
                )
        wait_until(lambda: self.committed(group, topic) < 0, what="the offsets expire")

    def expire_producers(self, group: str) -> None:
        """Let an application be idle until its transactional ids have expired."""
        with Client(self.servers) as client:

            def is_known() -> bool:
                return any(name.startswith(group) for name in list_transactions(client))

            wait_until(is_known, what="the producers are there")
            if self.is_shifted:
                self.clock.pass_days(8)
            wait_until(lambda: not is_known(), what="the producers are forgotten")

    def _is_emptied(self, topic: str) -> bool:
        first, end = self.watermarks(topic)
        return 0 < first == end

    def watermarks(self, topic: str) -> tuple[int, int]:
        with self._reader("reader") as consumer:
            found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)
            return found

    def committed(self, group: str, topic: str) -> int:
        """Return the group's offset; below 0 if there is none."""
        with self._reader(group) as consumer:
            [found] = consumer.committed([TopicPartition(topic, 0)], timeout=10)
            offset: int = found.offset
            return offset

    def _reader(self, group: str) -> Consumer:
        return Consumer({"bootstrap.servers": self.servers, "group.id": group})

    def write(self, topic: str, key: str, count: int, time_ms: int | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for _ in range(count):
            producer.produce(topic, b"x", key.encode(), timestamp=time_ms or self.now_ms)
        assert producer.flush(HANG_LIMIT_S) == 0

    def read(self, topic: str) -> list[tuple[str, str]]:
        """Return key and value of the topic's committed records."""
        first, _ = self.watermarks(topic)
        return [
            (message.key().decode(), message.value().decode())
            for message in records(self.servers, topic, 1, first={0: first})
        ]

    def wait_for(self, topic: str, count: int) -> list[tuple[str, str]]:
        """Wait until the topic has so many committed records, and return them."""
        wait_until(lambda: len(self.read(topic)) >= count, what=lambda: str(self.read(topic)))
        return self.read(topic)


class Stopped(NamedTuple):
    """Represents an application that has stopped at the beginning of the module."""

    state: Path
    output: list[tuple[str, str]]


def counting(days: Days, name: str, state: Path, *, ledger: bool = False) -> App:
    app = new_app(days, name, state, ledger=ledger)
    app.stream(f"{name}-in", key=serdes.string, value=serdes.string).group_by_key().count(
        store="counts"
    ).to_stream().map_values(str, value=serdes.string).to(f"{name}-out")
    return app


def new_app(days: Days, name: str, state: Path, *, ledger: bool = False) -> App:
    return App(
        name,
        ledger=ledger,
        bootstrap_servers=days.servers,
        state_dir=state,
        clock_shift_file=days.clock.path,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
    )


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> str:
    """Return the kind of the broker, which is started by `days` with settings of its own."""
    return choose_own(request.param)


@pytest.fixture(scope="module")
def days(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Days]:
    made = Days(broker, tmp_path_factory.mktemp("days"))
    yield made
    made.broker.close()


@pytest.fixture(scope="module")
def stopped(days: Days, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    """Return an application that has counted and stopped."""
    state = tmp_path_factory.mktemp("stopped")
    days.create("stopped-in", **KEPT)
    days.create("stopped-out", **KEPT)
    days.write("stopped-in", "ann", 3)
    with counting(days, "stopped", state).start():
        wait_until(
            lambda: [value for _, value in days.read("stopped-out")][-1:] == ["3"],
            what="three records are counted",
        )
    return Stopped(state, days.read("stopped-out"))


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("place", ["same", "other"])
def test_windows_stay_open_while_event_time_stands(days: Days, tmp_path: Path, place: str) -> None:
    """Check that a window is complete although its records are older than any retention."""
    name = f"windows-{place}"
    days.create(f"{name}-in", **KEPT)
    days.create(f"{name}-out", **KEPT)
    days.create(f"{name}-expiring", **FOR_A_DAY)
    old_ms = days.now_ms - (0 if days.is_shifted else 30 * DAY_MS)
    start_ms = old_ms // WINDOW_MS * WINDOW_MS
    with windowed(days, name, tmp_path / "a").start():
        days.write(f"{name}-in", "ann", 10, start_ms)
        days.write(f"{name}-expiring", "ann", 1, start_ms)
        wait_until(lambda: days.committed(name, f"{name}-in") >= 10, what="all is committed")
    days.pass_days(5, expiring=f"{name}-expiring")
    with windowed(days, name, tmp_path / ("a" if place == "same" else "b")).start():
        days.write(f"{name}-in", "bob", 1, start_ms + 10 * WINDOW_MS)
        assert days.wait_for(f"{name}-out", 1) == [("ann", "10")]


def windowed(days: Days, name: str, state: Path) -> App:
    app = new_app(days, name, state)
    app.stream(f"{name}-in", key=serdes.string, value=serdes.string).group_by_key().windowed_by(
        windows.tumbling(timedelta(milliseconds=WINDOW_MS), grace=timedelta(minutes=1))
    ).count(store="counts", emit="on_close").to_stream().map(
        lambda window, count: (window.key, str(count)), key=serdes.string, value=serdes.string
    ).to(f"{name}-out")
    return app


@pytest.mark.parametrize("place", ["same", "other"])
def test_an_application_that_was_stopped_for_longer_than_its_offsets_refuses(
    days: Days, stopped: Stopped, tmp_path: Path, place: str
) -> None:
    """Check that it does not count its inputs again, on top of what it has counted."""
    if days.committed("stopped", "stopped-in") >= 0:
        days.expire_offsets("stopped", "stopped-in")
    state = stopped.state if place == "same" else tmp_path / "b"
    running = counting(days, "stopped", state).start()
    wait_until(lambda: running.state == "ERROR", what="the application refuses")
    with pytest.raises(StreamsError, match="stopped-in") as refused:
        running.close()
    assert "offset" in str(refused.value)
    assert days.read("stopped-out") == stopped.output


@pytest.mark.parametrize("ledger", [False, True], ids=["plain", "ledger"])
def test_an_idle_application_goes_on_when_its_producers_were_forgotten(
    days: Days, tmp_path: Path, ledger: bool
) -> None:
    """Check that it goes on, before its first transaction and after it."""
    name = f"forgotten-{ledger}"
    days.create(f"{name}-in", **KEPT)
    days.create(f"{name}-out", **KEPT)
    with counting(days, name, tmp_path, ledger=ledger).start():
        for count in ("1", "2"):
            days.expire_producers(name)
            days.write(f"{name}-in", "ann", 1)
            assert days.wait_for(f"{name}-out", int(count))[-1] == ("ann", count)
