"""Test that the data consumer reports lags, pauses and positions out of range."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from streams.common.topic_partitions import Partition
from streams.runtime.clients import DataConsumer
from streams.runtime.clients import consumer as module
from streams.runtime.clients.stalled_reads import StalledReadCheck

INPUT, PAUSED = Partition("in", 0), Partition("in", 1)


class Client:
    """Stands in for confluent-kafka's consumer of one partition; `calls` records the calls."""

    def __init__(self) -> None:
        self.position_at = -1001
        self.cached, self.asked = -1001, 0
        self.is_away = False
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.calls.append(name)

    def list_topics(self, topic: str, timeout: float) -> Any:
        self.calls.append("list_topics")
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions={0: None})})

    def consume(self, records_max: int, timeout_s: float) -> list[Any]:
        return []

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition("in", 0, self.position_at)]

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        if cached:
            return 0, self.cached
        self.calls.append("ask")
        if self.is_away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return 0, self.asked


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def consumer(client: Client, monkeypatch: pytest.MonkeyPatch) -> DataConsumer:
    monkeypatch.setattr(module, "create_client", lambda *given: client)
    made = DataConsumer({})
    made.add_partitions({INPUT: 5})
    return made


def test_the_lag_of_a_new_partition_is_asked_for(client: Client, consumer: DataConsumer) -> None:
    client.cached = 5  # This value is from before the partition was added.
    client.asked = 8
    assert consumer.measure_lag(INPUT) == 3
    assert client.calls.count("ask") == 1


def test_later_the_lag_is_as_of_the_last_fetch(client: Client, consumer: DataConsumer) -> None:
    client.asked = 5
    assert consumer.measure_lag(INPUT) == 0
    client.cached, client.position_at = 20, 12
    assert consumer.measure_lag(INPUT) == 8
    assert client.calls.count("ask") == 1


@pytest.mark.parametrize("cached", [-1001, 6], ids=["unknown", "of a time before"])
def test_until_the_first_fetch_the_lag_is_up_to_the_end_that_was_asked_for(
    client: Client, consumer: DataConsumer, cached: int
) -> None:
    client.cached, client.asked = cached, 8
    assert consumer.measure_lag(INPUT) == 3
    assert consumer.measure_lag(INPUT) == 3, "nothing has been fetched: nothing else is known"
    client.position_at = 8
    assert consumer.measure_lag(INPUT) == 0


def test_the_lag_is_unknown_while_no_broker_answers(client: Client, consumer: DataConsumer) -> None:
    client.is_away = True
    assert consumer.measure_lag(INPUT) is None
    client.is_away = False
    client.asked = 6
    assert consumer.measure_lag(INPUT) == 1


def test_an_open_transaction_is_no_lag(client: Client, consumer: DataConsumer) -> None:
    client.asked = client.position_at = 10
    consumer.measure_lag(INPUT)
    client.cached = 15  # the high watermark, above what the transaction has written
    assert consumer.measure_lag(INPUT) == 5, "there may be something on its way"
    consumer.poll_records(10, 0)
    assert consumer.measure_lag(INPUT) == 0, "nothing has come: the last stable offset says why"


def test_a_partition_that_was_paused_is_not_when_it_is_added_again(
    client: Client, consumer: DataConsumer
) -> None:
    consumer.pause_partition(INPUT)
    consumer.remove_partitions(iter([INPUT]))
    assert client.calls[-3:] == ["pause", "resume", "incremental_unassign"]


def test_the_leaders_of_a_topic_are_looked_for_once_and_for_partitions_that_are_new(
    client: Client, consumer: DataConsumer
) -> None:
    consumer.add_partitions({INPUT: 6})
    assert client.calls.count("list_topics") == 1
    consumer.add_partitions({Partition("in", 1): 0, Partition("in", 2): 0})
    assert client.calls.count("list_topics") == 2


@pytest.mark.parametrize(
    ("reads", "told"), [(True, ["FAIL late", "down (_TRANSPORT)"]), (False, [])]
)
def test_lines_that_a_consumer_without_partitions_tells_at_its_close_are_of_long_ago(
    reads: bool, told: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    class Queueing(Client):
        """Stands in for a consumer that reports its errors only when it is closed."""

        def __init__(self, settings: dict[str, Any], logger: Any) -> None:
            super().__init__()
            self._settings, self._logger = settings, logger

        def close(self) -> None:
            self._logger.log(40, "%s %s", "FAIL", "late")
            self._settings["error_cb"](KafkaError(KafkaError._TRANSPORT, "down"))

    monkeypatch.setattr(module, "Consumer", Queueing)
    made = DataConsumer({})
    made.add_partitions({INPUT: 5})
    if not reads:
        made.remove_partitions([INPUT])
    made.close()
    assert caplog.messages == told


def test_a_renewed_client_reads_on_where_the_last_one_stood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients: list[Client] = []
    settings: list[Any] = []

    def create(name: str, kind: Any, given: Any, *more: Any) -> Client:
        settings.append(dict(given))
        clients.append(Client())
        return clients[-1]

    monkeypatch.setattr(module, "create_client", create)
    consumer = DataConsumer({"client.id": "a", "sasl.password": "first"})
    consumer.add_partitions({INPUT: 5})
    consumer.pause_partition(INPUT)
    clients[0].position_at = 9
    assigned: list[list[TopicPartition]] = []
    monkeypatch.setattr(
        Client, "incremental_assign", lambda _, given: assigned.append(given), raising=False
    )
    consumer.renew_client({"sasl.password": "second"})
    assert settings[1] == {"client.id": "a", "sasl.password": "second"}
    assert "close" in clients[0].calls
    assert assigned == [[TopicPartition("in", 0, 9)]]
    assert clients[1].calls == ["list_topics", "pause"]


def test_a_client_that_polls_nothing_of_what_there_is_is_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clients: list[Client] = []

    def create(name: str, kind: Any, given: Any, logger: Any) -> Client:
        clients.append(Client())
        return clients[-1]

    monkeypatch.setattr(module, "create_client", create)
    now_s, asked = [0.0], []

    def fetch_stable_offsets(partitions: Any) -> dict[Partition, int]:
        asked.append(sorted(partitions))
        return dict.fromkeys(partitions, 12)

    check = StalledReadCheck(fetch_stable_offsets, lambda: now_s[0])
    consumer = DataConsumer({"client.id": "app-restore"}, stalled_reads=check)
    consumer.add_partitions({INPUT: 5, PAUSED: 5})
    consumer.pause_partition(PAUSED)
    for _ in range(10):
        now_s[0] += 1.0
        consumer.poll_records(10, 0)
    assert asked == [[INPUT]], "what is paused is not to be read"
    assert [("close" in each.calls) for each in clients] == [True, False]
    assert (
        "app-restore reads nothing of what brokers have for it (in[0] at offset 5)" in caplog.text
    )


class OutOfRange:
    """Stands in for the message by which librdkafka tells that a position is out of range."""

    def __init__(self, position: int, number: int = 0) -> None:
        self._position, self._number = position, number

    def topic(self) -> str:
        return "in"

    def partition(self) -> int:
        return self._number

    def offset(self) -> int:
        return self._position

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._AUTO_OFFSET_RESET, "out of range")


def poll_errors(
    client: Client, consumer: DataConsumer, monkeypatch: pytest.MonkeyPatch, *errors: OutOfRange
) -> dict[Partition, int]:
    """Poll these errors and return the positions that the consumer takes for out of range."""
    monkeypatch.setattr(client, "consume", lambda *given: list(errors), raising=False)
    assert consumer.poll_records(10, 0) == []
    return consumer.pop_out_of_range_positions()


def test_a_position_out_of_range_is_told_once(
    client: Client, consumer: DataConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert poll_errors(client, consumer, monkeypatch, OutOfRange(5)) == {INPUT: 5}
    assert consumer.pop_out_of_range_positions() == {}


def test_a_position_of_a_partition_that_is_read_no_more_is_not_out_of_range(
    client: Client, consumer: DataConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert poll_errors(client, consumer, monkeypatch, OutOfRange(0, number=1)) == {}
    consumer.remove_partitions([INPUT])
    client.calls.clear()
    assert poll_errors(client, consumer, monkeypatch, OutOfRange(5)) == {}
    assert client.calls == [], "a partition that this consumer does not have stays untouched"


def test_a_position_before_the_partition_was_added_again_is_not_out_of_range(
    client: Client, consumer: DataConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assigned: list[list[TopicPartition]] = []
    monkeypatch.setattr(client, "incremental_assign", assigned.append, raising=False)
    consumer.pause_partition(INPUT)
    client.position_at = 8
    assert poll_errors(client, consumer, monkeypatch, OutOfRange(4)) == {}
    assert assigned == [[TopicPartition("in", 0, 8)]], "a log that was truncated is found out"
    assert client.calls[-1] == "pause"
    assert poll_errors(client, consumer, monkeypatch, OutOfRange(8)) == {INPUT: 8}


def test_a_poll_at_the_first_record_waits_for_no_more(
    client: Client, consumer: DataConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, float]] = []
    answers = [[], [create_message(1)], [create_message(2), create_message(3)]]

    def consume(records_max: int, timeout_s: float) -> list[Any]:
        calls.append((records_max, timeout_s))
        return answers.pop(0)

    monkeypatch.setattr(client, "consume", consume)
    assert consumer.poll_at_first_record(10, 0.05) == []
    assert [each.offset() for each in consumer.poll_at_first_record(10, 0.05)] == [1, 2, 3]
    assert calls == [(1, 0.05), (1, 0.05), (9, 0.0)]


def create_message(offset: int) -> Any:
    return Message("in", 0, offset)
