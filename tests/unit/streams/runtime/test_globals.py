"""Global tables: where a copy goes on, when it is made anew, and what ends the worker."""

from __future__ import annotations

from typing import Any

import pytest

from state.memory import MemoryDisk
from state.replica import Replica
from streams import App, serdes
from streams.errors import OutcomeUnknown, StreamsError
from streams.handling import Handler
from streams.positions import Partition
from streams.runtime.globals import GlobalTables
from streams.runtime.host import Event
from streams.runtime.stores import codecs_of
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, FakeConsumer, FakeHost, Script
from tests.unit.streams.runtime.kafka import Kafka

RATES = Partition("rates", 0)
TEXT: Any = {"key": serdes.string, "value": serdes.string}


class Worker:
    """A worker with one global table, which may be started again on the same disk."""

    def __init__(self, value: serdes.Serde[Any] = serdes.string) -> None:
        app = App("a")
        rates = app.global_table("rates", key=serdes.string, value=value, store="rates")
        app.stream("in", **TEXT).join(rates, lambda v, r: r, key=lambda k, v: v).for_each(print)
        self.kafka = Kafka({"in": 1, "rates": 1})
        self.script, self.clock = Script(), Clock()
        (self._table,) = app.topology().global_tables
        spec = self._table.store
        self.replica = Replica("rates", MemoryDisk(), codecs_of(spec))

    def started(self, handler: Handler = "fail") -> GlobalTables:
        return GlobalTables(
            [self._table],
            {"rates": self.replica},
            consumer=lambda: FakeConsumer(self.kafka, self.script, self.clock, "globals"),
            admin=FakeAdmin(self.kafka, self.script),
            host=FakeHost(self.clock),
            handler=handler,
        )

    def copied(self, handler: Handler = "fail") -> tuple[dict[str, Any], int]:
        """What is there after a start, and how many records were read for it."""
        tables = self.started(handler)
        tables.begin(self.no_stop())
        tables.end()
        found = tables.read("rates")
        assert found is not None
        return dict(found.all()), tables.records

    def no_stop(self) -> Event:
        return FakeHost(self.clock).event()


def test_a_copy_goes_on_where_it_stopped() -> None:
    worker = Worker()
    worker.kafka.load(RATES, ("eur", "1"), ("gbp", "2"))
    assert worker.copied() == ({"eur": "1", "gbp": "2"}, 2)
    worker.kafka.load(RATES, ("eur", None), (None, "of no key"))
    assert worker.copied() == ({"gbp": "2"}, 2)


def test_a_partition_that_is_new_is_copied_from_its_start() -> None:
    worker = Worker()
    worker.kafka.load(RATES, ("eur", "1"))
    worker.copied()
    worker.kafka.grow("rates", 2)
    worker.kafka.load(Partition("rates", 1), ("gbp", "2"))
    assert worker.copied() == ({"eur": "1", "gbp": "2"}, 1)


def test_of_a_topic_that_was_made_again_nothing_is_left() -> None:
    worker = Worker()
    worker.kafka.load(RATES, ("eur", "1"))
    worker.copied()
    worker.kafka.delete("rates")
    worker.kafka.create("rates", 1)
    worker.kafka.load(RATES, ("gbp", "2"))
    assert worker.copied() == ({"gbp": "2"}, 1)


def test_what_the_serde_refuses_is_for_the_handler() -> None:
    worker = Worker(serdes.int64)
    worker.kafka.load(RATES, ("eur", "12345678"), ("gbp", "short"))
    with pytest.raises(StreamsError, match=r"can't read rates\[0\]@1 .*short"):
        worker.copied()
    found, _ = worker.copied("skip")
    assert list(found) == ["eur"]


def test_a_broker_that_does_not_answer_at_the_start_is_asked_again() -> None:
    worker = Worker()
    worker.kafka.load(RATES, ("eur", "1"))
    worker.script.fail("admin.latest", OutcomeUnknown("timed out"))
    assert worker.copied() == ({"eur": "1"}, 1)


def test_a_topic_that_is_cut_below_its_copy_ends_the_worker_at_once() -> None:
    worker = Worker()
    worker.kafka.load(RATES, ("eur", "1"), ("gbp", "2"))
    tables = worker.started()
    tables.begin(worker.no_stop())
    worker.kafka.load(RATES, ("eur", "3"), ("gbp", "4"))
    worker.kafka.starts[RATES] = 3
    with pytest.raises(StreamsError, match=r"rates\[0\] has lost the position of its copy"):
        tables.step()


def test_a_topic_that_is_cut_while_it_is_copied_at_the_start_does_too() -> None:
    worker = Worker()
    worker.kafka.load(RATES, ("eur", "1"), ("gbp", "2"))
    tables = worker.started()
    began_s = worker.clock()

    class Cut(FakeConsumer):
        def add(self, positions: Any) -> None:
            super().add(positions)
            worker.kafka.starts[RATES] = 1

    tables._new_consumer = lambda: Cut(worker.kafka, worker.script, worker.clock, "globals")
    with pytest.raises(StreamsError, match=r"rates\[0\] has lost the position of its copy"):
        tables.begin(worker.no_stop())
    assert worker.clock() - began_s < 10
