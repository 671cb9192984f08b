"""Reading the records of one partition between two offsets: exactly those, and then it ends.

What lies at the end may be no record: a marker, an aborted transaction, a hole that compaction
left. So the end is judged by position, by the partition's own end, or by a record behind it; never
by a count. What is gone is an error: nothing is skipped in silence.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streams.errors import StreamsError
from streams.positions import Partition
from streams.runtime.clients.errors import HOPELESS, OUT_OF_RANGE, Lines, made

_WAIT_S = 0.1
_BULK = {
    # At the end of a partition the broker is asked for more: it shall say soon that there is none.
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 5,
    "topic.metadata.refresh.fast.interval.ms": 10,
    "max.partition.fetch.bytes": 4 << 20,
    "queued.max.messages.kbytes": 16 << 10,
}
FORCED = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
}
"""What a range needs to be read exactly: not for users to set."""

Header = tuple[str, bytes | None]


class Lists(NamedTuple):
    """What records hold, a list for each column; timestamps in ms since 1970; `headers` is None
    unless they were asked for."""

    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: list[int]
    timestamps: list[int]
    headers: list[list[Header]] | None


class RangeReader:
    """Reads ranges of offsets with one consumer.

    isolation: `read_committed` or `read_uncommitted`. timeout_s: how long nothing may come, where
    something should, before StreamsError says so.
    """

    def __init__(self, settings: Mapping[str, Any], isolation: str, timeout_s: float) -> None:
        self._said = _Said()
        self._timeout_s = timeout_s
        self._consumer = made(
            "consumer",
            Consumer,
            {**_BULK, **settings, **FORCED, "isolation.level": isolation},
            self._said,
        )

    def read(
        self,
        partition: Partition,
        first: int,
        until: int,
        records_max: int,
        *,
        headers: bool = False,
    ) -> Iterator[Lists]:
        """The records from `first` up to, and without, `until`; at most `records_max` at a time.

        Raises StreamsError where they can't all be read: offsets that are gone, a topic that is
        gone, a broker that says nothing for `timeout_s`.
        """
        self._consumer.assign([TopicPartition(*partition, first)])
        position, moved_s = first, time.monotonic()
        while position < until:
            before = position
            with _uncollected():
                lists, position = self._take(partition, position, until, records_max, headers)
            if lists is not None:
                yield lists
            now_s = time.monotonic()
            if position > before:
                moved_s = now_s
            elif now_s - moved_s > self._timeout_s:
                raise StreamsError(
                    f"{partition} stands at offset {position} of {until} for {self._timeout_s:g} s"
                    f"{self._said.last and ': ' + self._said.last}"
                )
        self._consumer.unassign()

    def _take(
        self, partition: Partition, position: int, until: int, records_max: int, headers: bool
    ) -> tuple[Lists | None, int]:
        """The next records, None if there were none, and the position behind them."""
        messages: list[Message] = self._consumer.consume(records_max, _WAIT_S)
        records, end = self._records(messages, partition, position, until)
        if not records:
            return None, max(position, self._position(partition), end)
        # The end may have come in the same batch, behind offsets that are no records.
        position = max(records[-1].offset() + 1, end)
        if position > until:
            records = [each for each in records if each.offset() < until]
        return (_lists(records, headers) if records else None), position

    def close(self) -> None:
        self._consumer.close()

    def _position(self, partition: Partition) -> int:
        """Past markers, which are no records but are consumed."""
        (found,) = self._consumer.position([TopicPartition(*partition)])
        return int(found.offset)

    def _records(
        self, messages: list[Message], partition: Partition, position: int, until: int
    ) -> tuple[list[Message], int]:
        """Those that are records, and the partition's end where it was met, or -1."""
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
            elif error.code() in OUT_OF_RANGE:
                raise StreamsError(
                    f"{partition}: offsets {position} to {until - 1} were to be read, and some of "
                    f"them are gone: {self._range(partition)}"
                )
            elif error.code() in HOPELESS:
                raise StreamsError(f"{partition} can't be read: {error.str()}")
            else:
                self._said.last = error.str()
        return records, end

    def _range(self, partition: Partition) -> str:
        try:
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(*partition), self._timeout_s
            )
        except KafkaException as error:
            return str(error.args[0].str())
        return f"the log now has {low} to {high - 1}"


class _Said(Lines):
    """librdkafka's lines, and the last error of a broker, which says why nothing comes."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""

    def error(self, error: KafkaError) -> None:
        self.last = error.str()
        super().error(error)


def _lists(messages: list[Message], headers: bool) -> Lists:
    """By `map` over the methods themselves: a third of what comprehensions cost."""
    return Lists(
        list(map(Message.key, messages)),
        list(map(Message.value, messages)),
        list(map(Message.offset, messages)),
        [each for _, each in map(Message.timestamp, messages)],
        [each.headers() or [] for each in messages] if headers else None,
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """With the collector of cycles off while there are messages, which it tracks: thousands at once
    look to it like a leak, and that it looks doubles what reading costs (with 100 bytes each)."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
