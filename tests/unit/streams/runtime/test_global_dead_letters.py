"""Test records of global tables that can't be read: who is asked, and where dead letters go."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams import App, StreamsError, dead_letter, serdes
from streams.errors import OutcomeUnknown
from streams.runtime.global_tables.tables import GlobalTables
from streams.settings.exception_handlers import ErrorContext, ExceptionHandler
from streams.testing import TopologyTestDriver
from tests.unit.streams.runtime.fakes import StopWhen
from tests.unit.streams.runtime.global_tables.test_global_tables import (
    ONE,
    RATES,
    Copying,
    Dying,
    rows,
)

POISON = b"\xff"
DEAD = dead_letter("dead")
OFFSETS = [b"1", b"3"]


def poisoned(disk: Any = None, *, batch: int = 10_000) -> Copying:
    """Return a topic whose second value and fourth key can't be read."""
    copying = Copying(disk, batch=batch)
    copying.kafka.create_topic("dead", 1)
    copying.load(("a", "1"))
    copying.kafka.append_record(ONE, b"a", POISON, 11, [("trace", b"1")])
    copying.load(("b", "2"))
    copying.kafka.append_record(ONE, POISON, b"3", -1)
    copying.load(("c", "4"))
    return copying


def letters(copying: Copying) -> list[Any]:
    log = copying.kafka.logs[copying.kafka.partitions_of("dead")[0]]
    return list(log.read_committed(0))


def offsets(copying: Copying) -> list[bytes | None]:
    return [dict(each.headers())["__streams.errors.offset"] for each in letters(copying)]


def counts(tables: GlobalTables) -> tuple[int, int]:
    counted = tables.count_failures()
    return counted["dropped"], counted["dead_letters"]


READABLE = {"a": "1", "b": "2", "c": "4"}


def test_a_dead_letter_is_the_record_as_it_was_read_with_its_time_and_what_was_wrong() -> None:
    copying = poisoned()
    tables = copying.begun(DEAD)
    assert rows(tables) == READABLE
    assert counts(tables) == (2, 2)
    one, two = letters(copying)
    assert (one.key(), one.value(), one.timestamp()[1]) == (b"a", POISON, 11)
    assert (two.key(), two.value(), two.timestamp()[1]) == (POISON, b"3", -1)
    found = dict(one.headers())
    assert (found["trace"], found["__streams.errors.topic"]) == (b"1", RATES.encode())
    assert found["__streams.errors.exception"] == b"builtins.UnicodeDecodeError"
    assert offsets(copying) == OFFSETS


def test_a_record_that_comes_later_has_a_dead_letter_too() -> None:
    copying = poisoned()
    tables = copying.begun(DEAD)
    copying.kafka.append_record(ONE, b"d", POISON, 5)
    tables.copy_new_records()
    assert offsets(copying) == [*OFFSETS, b"5"]
    assert len(copying.producers) == 1


@pytest.mark.parametrize("batch", [1, 2, 10_000])
def test_a_restart_writes_no_second_dead_letter_of_what_the_copy_is_past(batch: int) -> None:
    copying = poisoned(batch=batch)
    for _ in range(3):
        copying.begun(DEAD).stop_copying()
    assert offsets(copying) == OFFSETS


def test_the_start_tells_skipped_records_apart_from_copied_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    poisoned().begun(DEAD)
    assert "global tables are there: 3 records, 2 skipped, 2 of them as dead letters, in" in (
        caplog.text
    )


def test_a_copy_that_is_made_anew_writes_its_dead_letters_again() -> None:
    copying = poisoned()
    copying.begun(DEAD).stop_copying()
    copying.disk.clear_all_data()
    copying.begun(DEAD)
    assert offsets(copying) == OFFSETS * 2


def test_a_worker_killed_after_a_dead_letter_and_before_its_copy_writes_it_again() -> None:
    disk = Dying()
    disk.dies_in = 1
    copying = poisoned(disk)
    with pytest.raises(SystemExit):
        copying.worker(DEAD).copy_existing_records(StopWhen(copying.clock))
    assert offsets(copying) == OFFSETS
    assert rows(copying.begun(DEAD)) == READABLE
    assert offsets(copying) == OFFSETS * 2


def test_dead_letters_are_with_the_brokers_before_the_copy_is_past_their_records() -> None:
    copying = poisoned()
    copying.script.do_before("producer.flush", lambda: order.append(copying.disk.read_checkpoint()))
    order: list[Any] = []
    copying.begun(DEAD)
    assert order == [None]


@pytest.mark.parametrize("handler", ["skip", lambda context: "skip"])
def test_a_record_that_is_skipped_leaves_the_former_row_and_no_producer(
    handler: ExceptionHandler, caplog: pytest.LogCaptureFixture
) -> None:
    copying = poisoned()
    with caplog.at_level(logging.WARNING):
        tables = copying.begun(handler)
    assert (rows(tables), counts(tables)) == (READABLE, (2, 0))
    assert copying.producers == []
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("step 'the-table': deserialization of rates[0]@1 failed: skipped")


def test_a_function_is_asked_about_each_record_and_may_answer_each_differently() -> None:
    copying = poisoned()
    asked: list[ErrorContext] = []

    def decide(context: ErrorContext) -> Any:
        asked.append(context)
        return DEAD if context.source_value == POISON else "skip"

    tables = copying.begun(decide)
    assert (rows(tables), counts(tables), offsets(copying)) == (READABLE, (2, 1), [b"1"])
    assert [(each.step, each.task_id, each.offset) for each in asked] == [
        ("the-table", "global", 1),
        ("the-table", "global", 3),
    ]


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        ("fail", r"'the-table' can't read rates\[0\]@1 .*deserialization_handler= decides"),
        (lambda context: "fail", r"'the-table' can't read rates\[0\]@1 .*value=string"),
        (lambda context: True, r"handler answered True on rates\[0\]@1: it must return"),
        (lambda context: 1 / 0, r"handler itself failed on rates\[0\]@1: ZeroDivisionError"),
        (lambda context: dead_letter("nowhere"), r"'nowhere'.*rates\[0\]@1, does not exist"),
    ],
)
def test_what_ends_the_worker_names_the_record(handler: Any, message: str) -> None:
    copying = poisoned()
    with pytest.raises(StreamsError, match=message):
        copying.worker(handler).copy_existing_records(StopWhen(copying.clock))
    assert copying.disk.read_checkpoint() is None


@pytest.mark.parametrize("call", ["produce dead", "producer.flush", "admin.fetch_partition_counts"])
@pytest.mark.parametrize("after", [False, True])
def test_a_broker_that_is_away_delays_the_copy_and_no_dead_letter_is_lost(
    call: str, after: bool
) -> None:
    copying = poisoned()
    # The first look at the topics is the copy's own, the second that for the dead letter.
    at = 2 if call.startswith("admin") else 1
    copying.script.fail(call, OutcomeUnknown("no answer"), at=at, after=after)
    tables = copying.begun(lambda context: DEAD)
    assert copying.script.list_unmade_failures() == []
    assert rows(tables) == READABLE
    assert set(offsets(copying)) == set(OFFSETS)


def test_a_dead_letter_that_is_not_delivered_is_written_again_by_another_producer() -> None:
    copying = poisoned()
    copying.lost_topics = {"dead"}
    tables = copying.worker(DEAD)
    stop = StopWhen(copying.clock)

    def recover_brokers() -> bool:
        if copying.producers:
            copying.lost_topics.clear()
        return False

    stop.condition = recover_brokers
    tables.copy_existing_records(stop)
    assert offsets(copying) == OFFSETS
    assert rows(tables) == READABLE
    assert [each.discarded for each in copying.producers] == [True, False]


def test_dead_letters_that_nobody_takes_end_the_worker_after_the_time_out() -> None:
    copying = poisoned()
    copying.lost_topics = {"dead"}
    message = "dead letters of global table 'store' could not be written for 20 s: .*TIMED_OUT"
    with pytest.raises(StreamsError, match=message):
        copying.worker(DEAD, timeout_ms=20_000).copy_existing_records(StopWhen(copying.clock))
    assert copying.disk.read_checkpoint() is None


def test_a_stop_while_nobody_takes_dead_letters_ends_the_worker_and_copies_nothing() -> None:
    copying = poisoned()
    copying.lost_topics = {"dead"}
    stop = StopWhen(copying.clock)
    stop.condition = lambda: len(copying.producers) == 3
    tables = copying.worker(DEAD)
    tables.copy_until_stopped(stop)
    assert not tables.wait_until_caught_up(stop)
    assert copying.disk.read_checkpoint() is None
    copying.lost_topics.clear()
    assert rows(copying.begun(DEAD)) == READABLE


def test_a_dead_letter_that_is_too_large_ends_the_worker_and_names_record_and_topic() -> None:
    copying = poisoned()
    error = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
    copying.script.fail("produce dead", error)
    message = r"the dead letter of rates\[0\]@1 can't be written to topic 'dead'.*SIZE_TOO_LARGE"
    with pytest.raises(StreamsError, match=message):
        copying.worker(DEAD).copy_existing_records(StopWhen(copying.clock))


def test_a_record_without_a_key_is_counted_and_the_first_one_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    copying = Copying()
    copying.load(("a", "1"), (None, "2"), (None, "3"))
    with caplog.at_level(logging.WARNING):
        tables = copying.begun()
    assert (rows(tables), counts(tables)) == ({"a": "1"}, (2, 0))
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("global table 'store': rates[0]@1 is skipped, as it has no key")


def test_the_test_driver_has_the_dead_letters_of_global_tables() -> None:
    both: Any = {"key": serdes.string, "value": serdes.string}
    app = App("a", deserialization_handler=DEAD)
    app.global_table("rates", **both, store="rates")
    app.stream("in", **both).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("rates", key=serdes.bytes, value=serdes.bytes).pipe(b"k", POISON)
        (letter,) = driver.dead_letters("dead")
        assert (letter.key, letter.value) == (b"k", POISON)
        assert driver.metrics()["dead_letters"] == driver.dropped == 1
