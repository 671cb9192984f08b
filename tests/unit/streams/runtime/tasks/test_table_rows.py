"""Test which records of a table's topic a restore leaves out, and where it ends instead."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, TopologyTestDriver, serdes
from streams.common.topic_partitions import Partition
from streams.errors import SerdeError, StreamsError
from streams.runtime.counters import ThreadCounters
from streams.runtime.tasks.failures import FailureHandler
from streams.runtime.tasks.table_rows import create_row_encoder
from streams.serdes.registry_client import RegistryUnavailable
from streams.serdes.serde import Serde
from streams.settings.exception_handlers import (
    ErrorContext,
    ExceptionHandler,
    ExceptionHandlers,
    HandlerResponse,
    Stage,
    dead_letter,
)
from streams.testing.cluster import Message

GONE = "dead letters are written once, when the record is processed"


def read_number(data: bytes) -> int:
    """Read a number as a serde that fetches something: b"lost" stands for a connection lost."""
    if data == b"lost":
        raise ValueError("the schema can't be fetched") from ConnectionRefusedError(111, "refused")
    if data == b"away":
        raise RegistryUnavailable("no answer")
    if data == b"full":
        raise MemoryError
    return int(data)


NUMBER = Serde("number", lambda value: b"%d" % value, read_number)


def build_check(handler: ExceptionHandler, counters: ThreadCounters | None = None) -> Any:
    app = App("shop", topology_optimization="reuse.ktable.source.topics")
    app.table("rows", key=serdes.string, value=NUMBER, store="rows").to_stream().to("out")
    (sub,) = app.topology().subtopologies
    failures = FailureHandler(
        ExceptionHandlers(handler),
        counters=counters or ThreadCounters(),
        monotonic_s=float,
        list_topics=tuple,
    )
    return create_row_encoder(sub.stores[0], sub.sources, "0_0", failures)


def create_message(value: bytes | None) -> Message:
    return Message(Partition("rows", 0), 7, b"pen", value, 5_000)


@pytest.mark.parametrize("handler", ["skip", dead_letter("dead"), lambda failure: "skip"])
def test_a_record_that_its_handler_goes_on_without_is_left_out_and_not_counted_again(
    handler: ExceptionHandler,
) -> None:
    counters = ThreadCounters()
    encode_row = build_check(handler, counters)
    rows = [encode_row(create_message(value)) for value in (b"1", None, b"much")]
    assert rows == [(b"pen", b"1"), (b"pen", None), None]
    assert counters == ThreadCounters(), GONE


@pytest.mark.parametrize(
    ("handler", "hint"), [("fail", "deserialization_handler="), (lambda failure: "fail", "")]
)
def test_a_record_that_ends_its_thread_ends_a_restore(handler: ExceptionHandler, hint: str) -> None:
    with pytest.raises(SerdeError) as caught:
        build_check(handler)(create_message(b"much"))
    assert "store 'rows' can't be restored: rows[0]@7 can't be read with serdes key=" in str(
        caught.value
    )
    assert hint in str(caught.value)


def test_a_handler_function_is_told_the_record_as_where_it_was_processed() -> None:
    told: list[ErrorContext] = []

    def decide(failure: ErrorContext) -> HandlerResponse:
        told.append(failure)
        return "skip"

    build_check(decide)(create_message(b"much"))
    (failure,) = told
    assert (failure.stage, failure.task_id) == (Stage.DESERIALIZATION, "0_0")
    assert (failure.topic, failure.partition, failure.offset) == ("rows", 0, 7)
    assert (failure.source_key, failure.source_value) == (b"pen", b"much")


@pytest.mark.parametrize("value", [b"lost", b"away"])
def test_where_a_connection_or_a_registry_fails_no_row_is_left_out(value: bytes) -> None:
    with pytest.raises(StreamsError, match="could not be read, by no fault of the record"):
        build_check("skip")(create_message(value))


def test_an_error_that_selects_its_recovery_is_raised_as_it_is() -> None:
    with pytest.raises(MemoryError):
        build_check("skip")(create_message(b"full"))


def test_rows_outlast_a_restore_while_the_registry_of_their_serde_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    is_away = False

    def read(data: bytes) -> int:
        if is_away:
            raise ConnectionRefusedError(111, "Connection refused")
        return int(data)

    app = App(
        "shop",
        topology_optimization="reuse.ktable.source.topics",
        deserialization_handler="skip",
    )
    number = Serde("number", lambda value: b"%d" % value, read)
    app.table("rows", key=serdes.string, value=number, store="rows").to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("rows").pipe_many([("pen", 10), ("ink", 30)])
        driver.topic("rows", key=serdes.bytes, value=serdes.bytes).pipe_many(
            [(b"cap", b"much"), (b"cup", b"many")]
        )
        driver.crash()
        is_away = True
        with pytest.raises(StreamsError, match="by no fault of the record"):
            driver.restart()
        is_away = False
        caplog.clear()
        driver.restart()
        assert dict(driver.store("rows").all()) == {"pen": 10, "ink": 30}
    (told,) = [each.getMessage() for each in caplog.records if "restored from" in each.getMessage()]
    assert told.startswith("store 'rows' was restored from rows[0] without 2 records that no row")


def test_a_record_without_a_time_which_no_task_processes_is_no_row() -> None:
    without_time = Message(Partition("rows", 0), 7, b"pen", b"1", -1)
    assert build_check("fail")(without_time) is None
