"""Test that a record which a broker refuses is found by writing records one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from streams.errors import (
    AuthorizationError,
    OutcomeUnknown,
    StreamsError,
    TaskMigrated,
    WriteRefused,
)
from streams.runtime.clients.errors import RecordRefused, WriteNotAllowed
from streams.runtime.clients.refused_writes import QUIET_MS, RefusedWrites
from streams.runtime.clients.topic_limits import FetchTopicLimits, TopicLimits, find_no_limits


class Writing:
    """Stands in for a task and its producer; `refuse` says which error a value is refused with."""

    transactional = True
    delivered_offsets = None

    def __init__(self) -> None:
        self.message: Any = object()
        self.fails_production = False
        self.origin = "in[0]@0"
        self.written: list[bytes] = []
        self.commits = 0
        self.refuse: dict[bytes, int] = {}
        self.failure: Exception | None = None
        self.time_ms = 0
        self._reports: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        return self.time_ms

    def describe_record_origin(self) -> str:
        return self.origin

    def request_commit(self) -> None:
        self.commits += 1

    def wait_for_queue_room(self) -> None:
        """Return at once."""

    def produce(
        self, topic: str, value: bytes, key: Any, partition: int, report: Any, *rest: Any
    ) -> None:
        code = self.refuse.get(value)
        if code is None:
            self.written.append(value)
        error = None if code is None else KafkaError(code, "why")
        self._reports.append(lambda: report and report(error, None))

    def flush(self) -> None:
        reports, self._reports = self._reports, []
        for report in reports:
            report()

    def find_transaction_error(self) -> Exception | None:
        return self.failure


def start_search(
    writing: Writing, fetch_limits: FetchTopicLimits = find_no_limits
) -> tuple[RefusedWrites, Callable[..., None]]:
    refused = RefusedWrites(fetch_limits)
    refused.start_search(by_refusal=True)
    return refused, refused.wrap_produce_if_searching(writing, writing)  # type: ignore[arg-type]


def again(refused: RefusedWrites, writing: Writing) -> Callable[..., None]:
    """Return the function of the repeated transaction."""
    return refused.wrap_produce_if_searching(writing, writing)  # type: ignore[arg-type]


def test_without_a_search_nothing_stands_between_a_task_and_its_producer() -> None:
    writing = Writing()
    assert RefusedWrites().wrap_produce_if_searching(writing, writing) == writing.produce  # type: ignore[arg-type]


def test_a_refused_record_is_repeated_once_and_then_refused_without_being_sent() -> None:
    writing = Writing()
    writing.refuse[b"bad"] = KafkaError.INVALID_TIMESTAMP
    refused, write = start_search(writing)
    write("out", b"good", b"k")
    with pytest.raises(WriteRefused, match=r"what in\[0\]@0 writes to topic 'out' is refused: why"):
        write("out", b"bad", b"k")
    del writing.refuse[b"bad"]  # it would be taken now, and is not asked for again
    write = again(refused, writing)
    write("out", b"good", b"k")
    with pytest.raises(RecordRefused, match=r"INVALID_TIMESTAMP.*message\.timestamp"):
        write("out", b"bad", b"k")
    assert writing.written == [b"good", b"good"]
    assert writing.commits == 1


def test_what_the_topic_excludes_is_refused_without_another_repetition() -> None:
    writing = Writing()
    writing.refuse = {b"bad": KafkaError.INVALID_RECORD, b"sent": KafkaError.INVALID_RECORD}
    refused, write = start_search(writing, lambda topic: TopicLimits(is_compacted=topic == "out"))
    with pytest.raises(WriteRefused):
        write("out", b"bad", None)
    write = again(refused, writing)
    for number in range(100):
        writing.origin = f"in[0]@{number}"
        with pytest.raises(RecordRefused, match="it has no key"):
            write("out", b"bad", None)
        write("out", b"good", b"k")
        write("other", b"good", None)
    assert writing.written == [b"good", b"good"] * 100
    assert writing.commits == 0, "nothing is lost that a commit would keep"
    # After a while the broker is asked again: the topic may have other settings.
    writing.time_ms = QUIET_MS
    with pytest.raises(WriteRefused):
        write("out", b"sent", None)


def test_what_the_topic_excludes_keeps_the_search_going() -> None:
    writing = Writing()
    writing.refuse[b"bad"] = KafkaError.INVALID_RECORD
    refused, write = start_search(writing, lambda topic: TopicLimits(is_compacted=True))
    with pytest.raises(WriteRefused):
        write("out", b"bad", None)
    refused.end_search_if_quiet(0)
    writing.time_ms = QUIET_MS - 1
    with pytest.raises(RecordRefused):
        again(refused, writing)("out", b"other", None)
    refused.end_search_if_quiet(QUIET_MS)
    assert refused.is_searching


def test_at_least_once_a_refused_record_is_handled_at_once() -> None:
    writing = Writing()
    writing.transactional = False
    writing.refuse[b"bad"] = KafkaError.MSG_SIZE_TOO_LARGE
    _, write = start_search(writing)
    with pytest.raises(RecordRefused, match="4 bytes without its headers"):
        write("out", b"bad", b"k")


def test_where_any_refusal_ends_the_thread_nothing_is_repeated() -> None:
    writing = Writing()
    writing.fails_production = True
    writing.refuse[b"bad"] = KafkaError.INVALID_RECORD
    _, write = start_search(writing)
    with pytest.raises(RecordRefused, match="it has no key"):
        write("out", b"bad", None)


def test_the_same_content_of_another_record_is_sent() -> None:
    writing = Writing()
    writing.refuse[b"bad"] = KafkaError.INVALID_RECORD
    refused, write = start_search(writing)
    with pytest.raises(WriteRefused):
        write("out", b"bad", b"k")
    writing.refuse.clear()
    writing.origin = "in[0]@1"
    again(refused, writing)("out", b"bad", b"k")
    assert writing.written == [b"bad"]


def test_a_record_with_another_content_each_time_ends_the_thread_at_the_third() -> None:
    writing = Writing()
    writing.refuse = {b"1": 87, b"2": 87, b"3": 87}
    refused, write = start_search(writing)
    for value in (b"1", b"2"):
        with pytest.raises(WriteRefused):
            write("out", value, b"k")
        write = again(refused, writing)
    with pytest.raises(StreamsError, match=r"in\[0\]@0 writes to topic 'out' was refused 3 times"):
        write("out", b"3", b"k")


def test_any_error_of_a_broker_is_the_records_after_the_third_in_a_row() -> None:
    writing = Writing()
    writing.refuse[b"bad"] = KafkaError.UNKNOWN
    refused, write = start_search(writing)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match=r"what in\[0\]@0 writes to topic 'out': why"):
            write("out", b"bad", b"k")
        write = again(refused, writing)
    with pytest.raises(WriteRefused):
        write("out", b"bad", b"k")
    with pytest.raises(RecordRefused):
        again(refused, writing)("out", b"bad", b"k")


def test_a_fenced_producer_refuses_no_record() -> None:
    writing = Writing()
    writing.refuse[b"bad"] = KafkaError._PURGE_QUEUE
    writing.failure = TaskMigrated("fenced")
    _, write = start_search(writing)
    with pytest.raises(TaskMigrated):
        write("out", b"bad", b"k")


def test_a_topic_that_a_transaction_does_not_take_is_not_allowed() -> None:
    writing = Writing()
    writing.refuse[b"bad"] = KafkaError._PURGE_QUEUE
    writing.failure = WriteNotAllowed("which one?")
    refused, write = start_search(writing)
    with pytest.raises(WriteRefused, match="TOPIC_AUTHORIZATION_FAILED"):
        write("out", b"bad", b"k")
    with pytest.raises(AuthorizationError, match="not allowed to Write topic 'out'"):
        again(refused, writing)("out", b"bad", b"k")


def test_a_missing_right_is_named_with_its_topic() -> None:
    writing = Writing()
    writing.fails_production = True
    writing.refuse[b"bad"] = KafkaError.TOPIC_AUTHORIZATION_FAILED
    _, write = start_search(writing)
    with pytest.raises(AuthorizationError, match="not allowed to Write topic 'out'"):
        write("out", b"bad", b"k")


def test_a_changelog_record_that_is_refused_is_named_and_never_skipped() -> None:
    writing = Writing()
    writing.refuse[b"bad"] = KafkaError.MSG_SIZE_TOO_LARGE
    refused, _ = start_search(writing)
    changelogs = refused.wrap_changelog_producer_if_searching(writing)  # type: ignore[arg-type]
    changelogs.produce("a-c-changelog", b"good", b"k", 0, None, None, 1, None)
    with pytest.raises(StreamsError, match=r"changelog a-c-changelog\[0\].*b'k', of 3 bytes"):
        changelogs.produce("a-c-changelog", b"bad", b"k", 0, None, None, 1, None)


def test_records_are_written_in_batches_again_when_nothing_was_refused_for_a_while() -> None:
    writing = Writing()
    refused, write = start_search(writing)
    refused.end_search_if_quiet(0)
    refused.end_search_if_quiet(QUIET_MS - 1)
    assert refused.is_searching
    refused.end_search_if_quiet(QUIET_MS)
    assert not refused.is_searching
    write("out", b"good", b"k", -1, None, None, 0, None)
    assert writing._reports, "nothing is waited for"


def test_a_search_for_no_known_refusal_ends_at_the_next_commit() -> None:
    refused = RefusedWrites()
    refused.start_search(by_refusal=False)
    refused.end_search_if_quiet(5)
    assert not refused.is_searching
