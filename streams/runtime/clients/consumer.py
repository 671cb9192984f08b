"""Read assigned partitions from positions that are set, committed records only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from streams.errors import StreamsError
from streams.positions import Partition
from streams.runtime.clients.errors import HOPELESS, OUT_OF_RANGE, Lines, log, made

_LEARN_S = 1.0
_ASK_S = 1.0


class DataConsumer:
    """Reads assigned partitions, committed records only; a position is set, never guessed."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._lines = Lines()
        self._consumer = made("consumer", Consumer, settings, self._lines)
        self._strayed: dict[Partition, int] = {}
        self._known: dict[str, int] = {}
        self._begun: dict[Partition, int] = {}
        self._paused: set[Partition] = set()
        self._ends: dict[Partition, int] = {}
        """The end of each partition that was last fetched from the broker, where it was fetched."""
        self._idle = False

    def add(self, positions: Mapping[Partition, int]) -> None:
        """Begin to read each partition at its position."""
        for topic in {topic for topic, number in positions if number >= self._known.get(topic, 0)}:
            self._learn(topic)
        self._begun |= positions
        for partition in positions:
            self._ends.pop(partition, None)
        self._consumer.incremental_assign([TopicPartition(*p, o) for p, o in positions.items()])

    def _learn(self, topic: str) -> None:
        """Fetch a topic's leaders now.

        librdkafka looks for those of a new topic once a second, and for new partitions of a topic
        that it knows every few minutes.
        """
        try:
            metadata = self._consumer.list_topics(topic, timeout=_LEARN_S).topics[topic]
            self._known[topic] = len(metadata.partitions)
        except KafkaException as error:
            log.info("%s: %s; librdkafka goes on trying", topic, error.args[0].str())

    def remove(self, partitions: Iterable[Partition]) -> None:
        """Stop reading the partitions."""
        removed = list(partitions)
        for partition in removed:
            self.resume(partition)  # otherwise it would be paused when it is added again
            self._begun.pop(partition, None)
            self._ends.pop(partition, None)
        self._consumer.incremental_unassign([TopicPartition(*p) for p in removed])

    def pause(self, partition: Partition) -> None:
        """Poll no records of a partition until it is resumed; its position stays."""
        if partition not in self._paused:
            self._paused.add(partition)
            self._consumer.pause([TopicPartition(*partition)])

    def resume(self, partition: Partition) -> None:
        """Poll records of a paused partition again."""
        if partition in self._paused:
            self._paused.discard(partition)
            self._consumer.resume([TopicPartition(*partition)])

    def lag(self, partition: Partition) -> int | None:
        """Return how many offsets of a partition are not polled yet; None if unknown.

        The broker is asked once for each partition that was added: until the first fetch librdkafka
        knows no end, or an older one. From then on the end is as of the last fetch; but that is the
        high watermark, and an open transaction lies below it, so after a poll that returned nothing
        the last stable offset is fetched again.
        """
        asked = TopicPartition(*partition)
        (result,) = self._consumer.position([asked])
        position: int = result.offset if result.offset >= 0 else self._begun[partition]
        fetched_end = self._ends.get(partition)
        end: int = self._consumer.get_watermark_offsets(asked, cached=True)[1]
        if fetched_end is not None and fetched_end > end:
            end = fetched_end
        if fetched_end is None or (end > position and self._idle):
            try:
                end = self._consumer.get_watermark_offsets(asked, _ASK_S)[1]
                self._ends[partition] = end
            except KafkaException as error:
                log.info("end of %s: %s", partition, error.args[0].str())
                return None
        return max(end - position, 0)

    def take(self, records_max: int, timeout_s: float) -> list[Message]:
        """Poll up to `records_max` records, within `timeout_s` seconds.

        Raises: StreamsError where a partition can't be read.
        """
        messages: list[Message] = self._consumer.consume(records_max, timeout_s)
        self._idle = not messages
        if any(message.error() is not None for message in messages):
            return [message for message in messages if not self._failed(message)]
        return messages

    def strayed(self) -> dict[Partition, int]:
        """Return the partitions whose position is out of range, with that position, once each.

        The caller removes and adds them.
        """
        out_of_range, self._strayed = self._strayed, {}
        return out_of_range

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the next offset of each partition, past transaction markers.

        Partitions of which nothing was polled are left out.
        """
        results = self._consumer.position([TopicPartition(*p) for p in partitions])
        return {Partition(f.topic, f.partition): f.offset for f in results if f.offset >= 0}

    def close(self) -> None:
        # A client that reads nothing was never polled: its log lines would come late.
        self._lines.stale = not self._begun
        self._consumer.close()

    def _failed(self, message: Message) -> bool:
        """Note, log or raise the error of a message, and return whether it has one.

        Raises: StreamsError for an error that is permanent.
        """
        error = message.error()
        if error is None:
            return False
        partition_name = f"{message.topic()}[{message.partition()}]"
        if error.code() in OUT_OF_RANGE:
            log.warning("%s: %s", partition_name, error.str())
            self._strayed[Partition(message.topic(), message.partition())] = message.offset()
            return True
        if error.code() in HOPELESS:
            raise StreamsError(f"{partition_name} can't be read: {error.str()}")
        log.warning("%s: %s; librdkafka goes on trying", partition_name, error.str())
        return True
