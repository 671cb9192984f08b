"""Read records of a topic for a person: from any offsets, up to ends or on and on.

What ends a bounded read is each partition's position, as in `range_reader`: the offsets before an
end may be markers, aborted records or holes. Partitions are read side by side.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from streams.command_lines import format_command
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, OutcomeUnknown, StreamsError
from streams.runtime.clients.errors import (
    OUT_OF_RANGE_ERRORS,
    PERMANENT_ERRORS,
    LibrdkafkaLogger,
    check_authorized,
    create_client,
)
from streams.runtime.clients.header_names import repair_messages

_WAIT_S = 0.02
"""The seconds for which a read waits for more records than have come, also at a topic's end."""
_RECORDS_MAX = 500
_FORCED_SETTINGS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 100,
}


class TopicRecordReader:
    """Reads partitions from given offsets. `timeout_s` bounds the wait for a bounded read."""

    def __init__(self, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._consumer = create_client(
            "consumer", Consumer, {**settings, **_FORCED_SETTINGS}, LibrdkafkaLogger()
        )

    def read_records(
        self, positions: Mapping[Partition, int], ends: Mapping[Partition, int] | None = None
    ) -> Iterator[Message]:
        """Yield the records from `positions` on, up to `ends`, or without an end.

        Raises ConfigError for an offset that is not in the log, StreamsError for a topic that can't
        be read, OutcomeUnknown if no broker answers before the ends are reached.
        """
        unread = {p for p, first in positions.items() if ends is None or first < ends[p]}
        self._consumer.assign([TopicPartition(*p, positions[p]) for p in unread])
        moved_s = time.monotonic()
        while unread:
            messages = repair_messages(self._consumer.consume(_RECORDS_MAX, _WAIT_S))
            for message in messages:
                partition = Partition(message.topic(), message.partition())
                is_record = self._is_record(message, positions[partition])
                if ends is None:
                    if is_record:
                        yield message
                    continue
                if partition not in unread:
                    continue
                if is_record and message.offset() < ends[partition]:
                    yield message
                # A partition's end is an offset, too: that of the next record.
                if message.offset() + is_record >= ends[partition]:
                    unread.discard(partition)
            now_s = time.monotonic()
            if messages:
                moved_s = now_s
            elif ends is not None and now_s - moved_s > self._timeout_s:
                raise OutcomeUnknown(
                    f"no broker has answered for {self._timeout_s:g} s: records are missing of "
                    f"{', '.join(sorted(map(str, unread)))}"
                )
        self._consumer.unassign()

    def close(self) -> None:
        self._consumer.close()

    def _is_record(self, message: Message, first_offset: int) -> bool:
        """Return whether a message is a record; False for an end and for what passes by itself.

        Raises: ConfigError, AuthorizationError, StreamsError.
        """
        error = message.error()
        if error is None:
            return True
        name = f"{message.topic()}[{message.partition()}]"
        if error.code() in OUT_OF_RANGE_ERRORS:
            raise ConfigError(
                f"offset {first_offset} is not in {name}: "
                f"{format_command('topics describe', message.topic() or '')} shows which are"
            )
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return False  # it commits nothing, and needs no group
        check_authorized(error, "Read", message.topic())
        if error.code() in PERMANENT_ERRORS:
            raise StreamsError(f"{name} can't be read: {error.str()}")
        return False
