"""Read assigned partitions from positions that are set, committed records only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streams.common.topic_partitions import Partition
from streams.errors import StreamsError
from streams.runtime.clients.errors import (
    OUT_OF_RANGE_ERRORS,
    PERMANENT_ERRORS,
    LibrdkafkaLogger,
    check_authorized,
    create_client,
    log,
    with_topic_ids_logged,
)
from streams.runtime.clients.header_names import repair_messages
from streams.runtime.clients.stalled_reads import StalledReadCheck

_METADATA_TIMEOUT_S = 1.0
_WATERMARK_TIMEOUT_S = 1.0


class DataConsumer:
    """Reads committed records of assigned partitions, each from the position that it is given.

    `on_error` is called at each error of its connections, from within its other methods. With
    `watch_topic_ids` it notes the ids that topics get. By `stalled_reads`, if it is given, it
    replaces a client that polls nothing though there is something to read.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        on_error: Callable[[], None] = lambda: None,
        *,
        watch_topic_ids: bool = False,
        stalled_reads: StalledReadCheck | None = None,
    ) -> None:
        if watch_topic_ids:
            settings = with_topic_ids_logged(settings)
        self._settings = settings
        self._group = str(settings.get("group.id"))
        self._stalled_reads = stalled_reads
        self._on_error = on_error
        self._librdkafka_logger = LibrdkafkaLogger(self._note_connection_error)
        self._consumer = create_client("consumer", Consumer, settings, self._librdkafka_logger)
        self._out_of_range: dict[Partition, int] = {}
        self._known_partition_counts: dict[str, int] = {}
        self._start_offsets: dict[Partition, int] = {}
        self._paused: set[Partition] = set()
        self._fetched_ends: dict[Partition, int] = {}
        """The end of each partition that was last fetched from the broker, where it was fetched."""
        self._is_idle = False

    def add_partitions(self, positions: Mapping[Partition, int]) -> None:
        """Begin to read each partition at its position."""
        for topic in {
            topic
            for topic, number in positions
            if number >= self._known_partition_counts.get(topic, 0)
        }:
            self._refresh_leaders_and_partition_count(topic)
        self._start_offsets |= positions
        for partition in positions:
            self._fetched_ends.pop(partition, None)
        if self._stalled_reads is not None:
            self._stalled_reads.reset_wait()
        self._consumer.incremental_assign([TopicPartition(*p, o) for p, o in positions.items()])

    def renew_client(self, changed_settings: Mapping[str, Any]) -> None:
        """Replace the client by one with these settings changed, which reads on where it stands."""
        positions = self._read_positions()
        self._settings = {**self._settings, **changed_settings}
        renewed = create_client("consumer", Consumer, self._settings, self._librdkafka_logger)
        self._consumer.close()
        self._consumer = renewed
        self._known_partition_counts.clear()
        if positions:
            self.add_partitions(positions)
        if self._paused:
            self._consumer.pause([TopicPartition(*partition) for partition in self._paused])

    def _refresh_leaders_and_partition_count(self, topic: str) -> None:
        """Fetch the leaders of a topic's partitions now, before librdkafka would.

        librdkafka looks for those of a new topic once a second, and for new partitions of a topic
        that it knows every few minutes.
        """
        try:
            found = self._consumer.list_topics(topic, timeout=_METADATA_TIMEOUT_S).topics
            if topic in found:  # a broker that is not ready yet may list none
                self._known_partition_counts[topic] = len(found[topic].partitions)
        except KafkaException as error:
            log.info("%s: %s; librdkafka goes on trying", topic, error.args[0].str())

    def remove_partitions(self, partitions: Iterable[Partition]) -> None:
        """Stop reading the partitions."""
        removed = list(partitions)
        for partition in removed:
            self.resume_partition(partition)  # otherwise it would be paused when it is added again
            self._start_offsets.pop(partition, None)
            self._fetched_ends.pop(partition, None)
        self._consumer.incremental_unassign([TopicPartition(*p) for p in removed])

    def pause_partition(self, partition: Partition) -> None:
        """Poll no records of a partition until it is resumed; its position stays."""
        if partition not in self._paused:
            self._paused.add(partition)
            self._consumer.pause([TopicPartition(*partition)])

    def resume_partition(self, partition: Partition) -> None:
        """Poll records of a paused partition again."""
        if partition in self._paused:
            self._paused.discard(partition)
            self._consumer.resume([TopicPartition(*partition)])

    def measure_lag(self, partition: Partition) -> int | None:
        """Return how many offsets of a partition are not polled yet; None if unknown.

        The broker is asked once for each partition that was added: until the first fetch librdkafka
        knows no end, or an older one. From then on the end is as of the last fetch; but that is the
        high watermark, and an open transaction lies below it, so after a poll that returned nothing
        the last stable offset is fetched again.
        """
        asked = TopicPartition(*partition)
        (result,) = self._consumer.position([asked])
        position: int = result.offset if result.offset >= 0 else self._start_offsets[partition]
        fetched_end = self._fetched_ends.get(partition)
        end: int = self._consumer.get_watermark_offsets(asked, cached=True)[1]
        if fetched_end is not None and fetched_end > end:
            end = fetched_end
        if fetched_end is None or (end > position and self._is_idle):
            try:
                end = self._consumer.get_watermark_offsets(asked, _WATERMARK_TIMEOUT_S)[1]
                self._fetched_ends[partition] = end
            except KafkaException as error:
                log.info("end of %s: %s", partition, error.args[0].str())
                return None
        return max(end - position, 0)

    def get_last_fetched_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the ends of partitions as of their last fetches; none where nothing was fetched.

        No broker is asked.
        """
        ends = {}
        for partition in partitions:
            asked = TopicPartition(*partition)
            end: int = self._consumer.get_watermark_offsets(asked, cached=True)[1]
            if end >= 0:
                ends[partition] = end
        return ends

    def poll_records(self, records_max: int, timeout_s: float) -> list[Message]:
        """Collect up to `records_max` records for `timeout_s` seconds.

        Raises: StreamsError where a partition can't be read.
        """
        return self._handle_errors_and_keep_records(self._consumer.consume(records_max, timeout_s))

    def poll_at_first_record(self, records_max: int, timeout_s: float) -> list[Message]:
        """Wait up to `timeout_s` for a first record, and return it with others that have arrived.

        Raises: StreamsError where a partition can't be read.
        """
        messages = self._consumer.consume(1, timeout_s)
        if messages and records_max > 1:
            messages += self._consumer.consume(records_max - 1, 0.0)
        return self._handle_errors_and_keep_records(messages)

    def serve_callbacks(self) -> None:
        """Log the lines that wait, and take statistics, where no partition is read, so none polled.

        Otherwise they would wait in memory for as long as the worker has no task.
        """
        if not self._start_offsets:
            self._consumer.consume(1, 0.0)

    def _handle_errors_and_keep_records(self, messages: list[Message]) -> list[Message]:
        """Return the records among messages, and handle the errors."""
        self._is_idle = not messages
        if self._stalled_reads is not None:
            if messages:
                self._stalled_reads.note_records()
            else:
                self._replace_stalled_client(self._stalled_reads)
        if any(message.error() is not None for message in messages):
            messages = [
                message for message in messages if not self._note_or_raise_if_error(message)
            ]
        return repair_messages(messages)

    def _note_connection_error(self) -> None:
        """Pass on that a connection has failed: reads may stall after that."""
        if self._stalled_reads is not None:
            self._stalled_reads.note_error()
        self._on_error()

    def _replace_stalled_client(self, stalled_reads: StalledReadCheck) -> None:
        """Replace the client by a new one if it has stalled, which reads on where it stands."""

        def read_unpaused_positions() -> dict[Partition, int]:
            return {p: at for p, at in self._read_positions().items() if p not in self._paused}

        if stalled := stalled_reads.find_stalled(read_unpaused_positions):
            where = ", ".join(f"{p} at offset {at}" for p, at in sorted(stalled.items()))
            log.warning(
                "the consumer %s reads nothing of what brokers have for it (%s): it goes on with "
                "new connections",
                self._settings.get("client.id", ""),
                where,
            )
            self.renew_client({})

    def _read_positions(self) -> dict[Partition, int]:
        """Return the next offset of each partition that is read."""
        return self._start_offsets | self.next_offsets(self._start_offsets)

    def pop_out_of_range_positions(self) -> dict[Partition, int]:
        """Return the partitions whose position is out of range, with that position, once each.

        The caller removes and adds them.
        """
        out_of_range, self._out_of_range = self._out_of_range, {}
        return out_of_range

    def pop_seen_topic_ids(self) -> dict[str, str]:
        """Return the ids that topics were seen to have got since the last call, by topic.

        librdkafka fetches by a topic's id, and tells none to its user but in a line of its log.
        That waits in the queue of the records, before those that were fetched by the id: so the id
        is here at the latest when the first of them has been polled.
        """
        return self._librdkafka_logger.pop_seen_topic_ids()

    @property
    def missing_topics(self) -> Collection[str]:
        """Return the topics that brokers do not have, as of librdkafka's last look at each."""
        return self._librdkafka_logger.missing_topics

    def next_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the next offset of each partition, past transaction markers.

        Partitions of which nothing was polled are left out.
        """
        results = self._consumer.position([TopicPartition(*p) for p in partitions])
        return {Partition(f.topic, f.partition): f.offset for f in results if f.offset >= 0}

    def close(self) -> None:
        # A client that reads nothing was never polled: its log lines would come late.
        self._librdkafka_logger.is_muted = not self._start_offsets
        self._consumer.close()

    def _note_or_raise_if_error(self, message: Message) -> bool:
        """Note, log or raise the error of a message, and return whether it has one.

        Raises: StreamsError for an error that is permanent.
        """
        error = message.error()
        if error is None:
            return False
        partition_name = f"{message.topic()}[{message.partition()}]"
        if error.code() in OUT_OF_RANGE_ERRORS:
            self._note_out_of_range(message)
            return True
        is_group = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        check_authorized(error, "Read", self._group if is_group else message.topic())
        if error.code() in PERMANENT_ERRORS:
            raise StreamsError(f"{partition_name} can't be read: {error.str()}")
        log.warning("%s: %s; librdkafka goes on trying", partition_name, error.str())
        return True

    def _note_out_of_range(self, message: Message) -> None:
        """Note that a partition's position is out of range, unless the error is an older one.

        librdkafka drops the queued records of a partition that was removed, and delivers its queued
        errors, also after it was added again. A position below that of the last addition is an
        older one, or where a log was truncated: fetching again from here tells which.
        """
        partition, position = Partition(message.topic(), message.partition()), message.offset()
        start_offset = self._start_offsets.get(partition)
        if start_offset is None:
            log.info("%s: %d was out of range when it was still read", partition, position)
        elif 0 <= position < start_offset:
            log.info(
                "%s: %d was out of range, read from %d since", partition, position, start_offset
            )
            self._restart_fetching(partition)
        else:
            log.warning("%s: %s", partition, message.error().str())
            self._out_of_range[partition] = position

    def _restart_fetching(self, partition: Partition) -> None:
        """Remove a partition and add it again at the next offset to poll; paused, if it was."""
        position = {partition: self._start_offsets[partition]} | self.next_offsets([partition])
        is_paused = partition in self._paused
        self.remove_partitions([partition])
        self.add_partitions(position)
        if is_paused:
            self.pause_partition(partition)
