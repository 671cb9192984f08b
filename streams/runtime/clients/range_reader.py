"""Read exactly the records of one partition between two offsets.

The offsets at the end may be no records: a marker, an aborted transaction, a hole that compaction
left. So the end is judged by position, by the partition's own end, or by a record behind it; never
by a count. Offsets that are gone are an error: nothing is skipped in silence.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streams.common.message_headers import Header
from streams.common.topic_partitions import Partition
from streams.errors import StreamsError
from streams.runtime.clients.errors import (
    OUT_OF_RANGE_ERRORS,
    PERMANENT_ERRORS,
    LibrdkafkaLogger,
    check_authorized,
    create_client,
    with_topic_ids_logged,
)
from streams.runtime.clients.header_names import repair_messages

_NextPosition: TypeAlias = int
_EndOffsetIfReached: TypeAlias = int  # -1 if the end was not reached

_WAIT_S = 0.1
_FETCH_SETTINGS = {
    # At the end of a partition the broker should answer soon that there are no more records.
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 5,
    "topic.metadata.refresh.fast.interval.ms": 10,
    "max.partition.fetch.bytes": 4 << 20,
    "queued.max.messages.kbytes": 16 << 10,
}
FORCED_SETTINGS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
}
"""Settings without which a range is not read exactly; users can't set them."""


class RecordColumns(NamedTuple):
    """Holds the fields of records, with a list for each field.

    Timestamps are in ms since 1970; `headers` is None unless they were asked for.
    """

    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: list[int]
    timestamps: list[int]
    headers: list[list[Header]] | None


class RangeReader:
    """Reads ranges of offsets with one consumer.

    `isolation` is `read_committed` or `read_uncommitted`. `timeout_s` is how long nothing may come,
    where something should, before StreamsError is raised.
    """

    def __init__(self, settings: Mapping[str, Any], isolation: str, timeout_s: float) -> None:
        self._group = str(settings.get("group.id"))
        self._error_logger = _LastErrorLogger()
        self._timeout_s = timeout_s
        self._consumer = create_client(
            "consumer",
            Consumer,
            {
                **_FETCH_SETTINGS,
                **with_topic_ids_logged(settings),
                **FORCED_SETTINGS,
                "isolation.level": isolation,
            },
            self._error_logger,
        )

    def read_range(
        self,
        partition: Partition,
        first: int,
        until: int,
        records_max: int,
        *,
        include_headers: bool = False,
        topic_id: str | None = None,
    ) -> Iterator[RecordColumns]:
        """Yield the records from offset `first` up to, and without, `until`, in batches.

        A batch has at most `records_max` records. `topic_id` is the id that the topic has to have,
        if it is known.

        Raises: StreamsError where they can't all be read: offsets that are gone, a topic that is
        gone or another one, a broker that says nothing for `timeout_s`.
        """
        self._consumer.assign([TopicPartition(*partition, first)])
        position, moved_s = first, time.monotonic()
        while position < until:
            before = position
            with _pause_garbage_collection():
                lists, position = self._poll_batch(
                    partition, position, until, records_max, include_headers
                )
            topic_id = self._require_same_topic_id(partition.topic, topic_id)
            if lists is not None:
                yield lists
            now_s = time.monotonic()
            if position > before:
                moved_s = now_s
            elif now_s - moved_s > self._timeout_s:
                raise StreamsError(
                    f"{partition} stands at offset {position} of {until} for {self._timeout_s:g} s"
                    f"{self._error_logger.last_error and ': ' + self._error_logger.last_error}"
                )
        self._consumer.unassign()

    def _require_same_topic_id(self, topic: str, expected_id: str | None) -> str | None:
        """Return the id of the topic that is read; None while it is not known.

        Raises: StreamsError if it is not the expected one, which is that of the first batch where
        the caller expects none.

        librdkafka fetches by the id, and logs a new one ahead of the records that it fetches by it.
        """
        seen_id = self._error_logger.find_topic_id(topic)
        if expected_id is not None and seen_id is not None and seen_id != expected_id:
            raise StreamsError(
                f"{topic} is another topic of the same name than the one whose offsets are to be "
                f"read (of id {expected_id}, now {seen_id}): it was deleted and created again. "
                "Begin a new read or query"
            )
        return expected_id or seen_id

    def _poll_batch(
        self,
        partition: Partition,
        position: int,
        until: int,
        records_max: int,
        include_headers: bool,
    ) -> tuple[RecordColumns | None, _NextPosition]:
        """Poll the next records, and return them, or None, with the position behind them."""
        messages: list[Message] = self._consumer.consume(records_max, _WAIT_S)
        records, end = self._split_messages(messages, partition, position, until)
        if not records:
            return None, max(position, self._consumer_position(partition), end)
        # The end may have come in the same batch, behind offsets that are no records.
        position = max(records[-1].offset() + 1, end)
        if position > until:
            records = [each for each in records if each.offset() < until]
        return (_to_columns(records, include_headers) if records else None), position

    def close(self) -> None:
        self._consumer.close()

    def _consumer_position(self, partition: Partition) -> int:
        """Return the offset at which the consumer reads on, past transaction markers."""
        (result,) = self._consumer.position([TopicPartition(*partition)])
        return int(result.offset)

    def _split_messages(
        self, messages: list[Message], partition: Partition, position: int, until: int
    ) -> tuple[list[Message], _EndOffsetIfReached]:
        """Return the messages that are records, and the partition's end offset if reached, else -1.

        Raises: StreamsError for an offset out of range and for a permanent error.
        """
        if not any(map(Message.error, messages)):
            return messages, -1
        end = -1
        records = []
        for each in messages:
            error = each.error()
            if error is None:
                records.append(each)
            elif error.code() == KafkaError._PARTITION_EOF:
                end = each.offset()
            elif error.code() in OUT_OF_RANGE_ERRORS:
                raise StreamsError(
                    f"{partition}: offsets {position} to {until - 1} were to be read, and some of "
                    f"them are gone: {self._describe_range(partition)}"
                )
            elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                check_authorized(error, "Describe", self._group)
            elif error.code() in PERMANENT_ERRORS:
                check_authorized(error, "Read", partition.topic)
                raise StreamsError(f"{partition} can't be read: {error.str()}")
            else:
                self._error_logger.last_error = error.str()
        return records, end

    def _describe_range(self, partition: Partition) -> str:
        """Describe the offsets that the partition has now, for an error message."""
        try:
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(*partition), self._timeout_s
            )
        except KafkaException as error:
            return str(error.args[0].str())
        return f"the log now has {low} to {high - 1}"


class _LastErrorLogger(LibrdkafkaLogger):
    """Logs librdkafka's lines, and keeps the last error, which says why no records come."""

    def __init__(self) -> None:
        super().__init__()
        self.last_error = ""

    def log_error(self, error: KafkaError) -> None:
        """Log an error of the client, and keep its text as `last_error`."""
        self.last_error = error.str()
        super().log_error(error)


def _to_columns(messages: list[Message], include_headers: bool) -> RecordColumns:
    """Return messages as lists of their fields.

    `map` over the methods themselves costs a third of what comprehensions do.
    """
    return RecordColumns(
        list(map(Message.key, messages)),
        list(map(Message.value, messages)),
        list(map(Message.offset, messages)),
        [each for _, each in map(Message.timestamp, messages)],
        [each.headers() or [] for each in repair_messages([*messages])]
        if include_headers
        else None,
    )


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Turn Python's garbage collector off within this context manager's block.

    The collector tracks the messages. Thousands at once look to it like a leak, and its runs double
    what reading costs (with 100 bytes each).
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
