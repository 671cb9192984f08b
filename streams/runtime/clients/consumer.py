"""Reading: assigned partitions at positions that are set, committed records only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from streams.errors import StreamsError
from streams.positions import Partition
from streams.runtime.clients.errors import HOPELESS, log, made


class DataConsumer:
    """Reads assigned partitions, committed records only; a position is set, never guessed."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._consumer = made("consumer", Consumer, settings)

    def add(self, positions: Mapping[Partition, int]) -> None:
        """Begin to read each partition at its position."""
        self._consumer.incremental_assign([TopicPartition(*p, o) for p, o in positions.items()])

    def remove(self, partitions: Iterable[Partition]) -> None:
        self._consumer.incremental_unassign([TopicPartition(*p) for p in partitions])

    def take(self, records_max: int, timeout_s: float) -> list[Message]:
        """Up to `records_max` records. Raises StreamsError where a position can't be read."""
        messages: list[Message] = self._consumer.consume(records_max, timeout_s)
        if any(message.error() is not None for message in messages):
            return [message for message in messages if not self._failed(message)]
        return messages

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The next offset of each partition, past transaction markers; unread ones are left out."""
        found = self._consumer.position([TopicPartition(*p) for p in partitions])
        return {Partition(f.topic, f.partition): f.offset for f in found if f.offset >= 0}

    def close(self) -> None:
        self._consumer.close()

    @staticmethod
    def _failed(message: Message) -> bool:
        error = message.error()
        if error is None:
            return False
        where = f"{message.topic()}[{message.partition()}]"
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise StreamsError(f"{where}: the position is outside the topic: {error.str()}")
        if error.code() in HOPELESS:
            raise StreamsError(f"{where} can't be read: {error.str()}")
        log.warning("%s: %s; librdkafka goes on trying", where, error.str())
        return True
