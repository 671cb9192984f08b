"""Test how clients report ends: of a range of offsets, of a coordinator, of a producer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError, TaskMigrated
from streams.runtime.clients import (
    RangeReader,
    StreamsProducer,
    committed_offset,
    fetch_stable_offset,
    producer,
    range_reader,
)
from streams.runtime.clients.errors import NotReady

PLACE = Partition("t", 0)


def record(offset: int) -> Message:
    return Message(topic="t", partition=0, offset=offset, value=b"v")


def end(offset: int) -> Message:
    error = KafkaError(KafkaError._PARTITION_EOF)
    return Message(topic="t", partition=0, offset=offset, error=error)


def refusal(code: int) -> Message:
    return Message(error=KafkaError(code))


class Client:
    """Stands in for librdkafka's consumer: it gives scripted answers, and then nothing more."""

    def __init__(self, answers: list[Any]) -> None:
        self._answers = answers
        self.asked = 0

    def assign(self, partitions: list[TopicPartition]) -> None:
        pass

    def unassign(self) -> None:
        pass

    def close(self) -> None:
        pass

    def consume(self, records_max: int, timeout_s: float) -> list[Message]:
        has_messages = self._answers and isinstance(self._answers[0], list)
        return self._answers.pop(0) if has_messages else []

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition("t", 0, -1001)]

    def committed(self, partitions: list[TopicPartition], timeout_s: float) -> list[TopicPartition]:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return [answer]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Client]:
    def made(*answers: Any) -> Client:
        found = Client(list(answers))
        for module in (range_reader, committed_offset):
            monkeypatch.setattr(module, "create_client", lambda *_: found)
        return found

    return made


@pytest.mark.parametrize(
    "batches",
    [
        [[record(0), record(1)], [end(5)]],
        [[record(0), record(1), end(5)]],  # No record follows, and the end is reported once.
        [[record(0), record(1), record(7)]],
        [[record(0), end(1), record(1), record(5)]],
    ],
)
def test_a_range_ends_where_nothing_more_can_come(
    client: Callable[..., Client], batches: list[list[Message]]
) -> None:
    client(*batches)
    found = RangeReader({}, "read_committed", 0.05).read_range(PLACE, 0, 5, 100)
    assert [offset for lists in found for offset in lists.offsets] == [0, 1]


@pytest.mark.parametrize(
    "moving", [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_an_offset_is_asked_for_again_while_the_coordinator_moves(
    client: Callable[..., Client], moving: int
) -> None:
    asked = client(moving, moving, TopicPartition("t", 0, 7, "rows"))
    assert fetch_stable_offset({}, "g", PLACE, 30.0) == OffsetAndMetadata(7, "rows")
    assert asked.asked == 3


@pytest.mark.parametrize("error", [KafkaError.NOT_COORDINATOR, KafkaError._TIMED_OUT])
def test_an_offset_that_is_not_told_in_time_is_not_known(
    client: Callable[..., Client], error: int
) -> None:
    asked = client(error)
    with pytest.raises(OutcomeUnknown, match="offset of group g"):
        fetch_stable_offset({}, "g", PLACE, 0.15)
    assert asked.asked <= 2  # at most each 0.1 s


@pytest.mark.parametrize(
    "answers",
    [
        [KafkaError.GROUP_AUTHORIZATION_FAILED],
        [KafkaError._TIMED_OUT, [refusal(KafkaError.GROUP_AUTHORIZATION_FAILED)]],
        [
            KafkaError._TIMED_OUT,
            [refusal(KafkaError._TRANSPORT)],
            KafkaError._TIMED_OUT,
            [refusal(KafkaError.GROUP_AUTHORIZATION_FAILED)],
        ],
    ],
    ids=["in the answer", "beside it", "later"],
)
def test_an_offset_that_may_not_be_read_names_the_missing_right(
    client: Callable[..., Client], answers: list[Any]
) -> None:
    client(*answers)
    with pytest.raises(AuthorizationError, match="not allowed to Read group 'g'"):
        fetch_stable_offset({}, "g", PLACE, 30.0)


@pytest.mark.parametrize(
    ("raised", "named"),
    [
        (KafkaError(KafkaError._FATAL), TaskMigrated),
        (KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), StreamsError),
        (KafkaError(KafkaError._TIMED_OUT), NotReady),
    ],
)
def test_a_record_that_is_refused_by_a_producer_that_was_fenced_says_so(
    monkeypatch: pytest.MonkeyPatch, raised: KafkaError, named: type[Exception]
) -> None:
    class Fenced:
        def produce(self) -> None:
            raise KafkaException(raised)

        def begin_transaction(self) -> None:
            raise KafkaException(KafkaError(KafkaError._FENCED))

    monkeypatch.setattr(producer, "create_client", lambda *_: Fenced())
    writing = StreamsProducer("p", {}, transactional=False, timeout_s=1.0)
    with pytest.raises(KafkaException) as refused:
        writing.produce()
    assert type(writing.translate_produce_error(refused.value, "doing", "out")) is named
    assert writing.translate_produce_error(ValueError(), "doing", "out") is None
