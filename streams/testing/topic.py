"""Represent one topic of a driver: records go in by `pipe`, committed ones come out by `read`.

Serdes are the topology's: records are piped with those of the source that reads the topic, and read
with those of the sink that writes it. What was read is not read again, by no handle of the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from state.errors import describe_serde_error
from streams.common.durations import duration_to_ms
from streams.common.partitioning import partition_for_key
from streams.common.topic_partitions import Partition
from streams.dsl.kafka_streams_names import create_missing_attribute_error
from streams.errors import ConfigError, SerdeError
from streams.processor.record import GivenHeaders, Record, to_headers
from streams.serdes import Serde
from streams.testing.cluster import InMemoryCluster, Message
from streams.testing.produce_arguments import encode_header

Key: TypeAlias = Any
Value: TypeAlias = Any

PipedRecord = Record[Any, Any] | tuple[Any, ...]
"""A record, or key, value and, where they are wanted, timestamp in ms and headers."""


class KeyValueSerdes(NamedTuple):
    """Holds the serdes of the keys and the values of a topic."""

    key: Serde[Any]
    value: Serde[Any]

    def for_topic(self, topic: str) -> KeyValueSerdes:
        """Return the serdes bound to a topic."""
        return KeyValueSerdes(
            self.key.for_topic(topic, "key"), self.value.for_topic(topic, "value")
        )


class TopicReader:
    """Tracks which records of a topic were read."""

    def __init__(self, cluster: InMemoryCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._positions: dict[Partition, int] = {}

    def read_next(self) -> Message | None:
        """Return the next committed record: of all partitions the one that was written first.

        None if all were read.
        """
        heads = (self._find_next(partition) for partition in self._list_partitions())
        message = min((m for m in heads if m is not None), key=_get_write_number, default=None)
        if message is not None:
            self._positions[Partition(self._topic, message.partition())] = message.offset() + 1
        return message

    def read_rest(self) -> list[Message]:
        """Return all unread records, in the order in which they were written."""
        return self._read_from(self._positions)

    def read_from_beginning(self) -> list[Message]:
        """Return all records from the beginning, and mark them as read."""
        return self._read_from({})

    def is_exhausted(self) -> bool:
        """Return whether all committed records were read."""
        return all(self._find_next(partition) is None for partition in self._list_partitions())

    def _list_partitions(self) -> list[Partition]:
        return self._cluster.partitions_of(self._topic)

    def _find_next(self, partition: Partition) -> Message | None:
        """Return the next committed record of a partition; None if all were read."""
        log = self._cluster.logs[partition]
        message, self._positions[partition] = log.find_first_committed(
            self._positions.get(partition, 0)
        )
        return message

    def _read_from(self, positions: dict[Partition, int]) -> list[Message]:
        """Return the committed records from the positions on, and mark all records as read."""
        found: list[Message] = []
        for partition in self._list_partitions():
            log = self._cluster.logs[partition]
            found += log.read_committed(positions.get(partition, 0))
            self._positions[partition] = log.last_stable_offset
        return sorted(found, key=_get_write_number)


def _get_write_number(message: Message) -> int:
    """Return the number of a message in the order in which all were written."""
    return message.number


class DriverAccess(NamedTuple):
    """Holds the driver's functions that a topic uses: clock, partition choice, processing."""

    now_ms: Callable[[], int]
    random_partition: Callable[[int], int]
    """Returns a random number below a partition count, for a record without a key."""
    append_and_process: Callable[[list[Callable[[], None]]], None]
    """Calls functions that append records, if the application takes any, and processes what
    follows."""


class DriverTopic:
    """Represents a topic, as a test sees it; made by `TopologyTestDriver.topic`.

    Kafka Streams' TestInputTopic and TestOutputTopic in one.

    The examples of its methods go on from this one:

    >>> app = App("shop")
    >>> orders = app.stream("orders", key=serdes.string, value=serdes.int64)
    >>> orders.map_values(lambda total: -total).to("debts")
    >>> driver = TopologyTestDriver(app)
    >>> debts = driver.topic("debts")
    """

    def __init__(
        self,
        name: str,
        cluster: InMemoryCluster,
        driver: DriverAccess,
        reader: TopicReader,
        *,
        input_serdes: KeyValueSerdes,
        output_serdes: KeyValueSerdes,
        pipe_refusal: str,
    ) -> None:
        self.name = name
        self._cluster = cluster
        self._driver = driver
        self._reader = reader
        self._input_serdes = input_serdes
        self._output_serdes = output_serdes
        self._pipe_refusal = pipe_refusal
        """Why nothing can be piped; empty if records can be."""
        self._advanced_ms = 0
        """How far the times of piped records are ahead of the wall clock."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says what to call instead of `name`."""
            raise create_missing_attribute_error(self, name)

    def pipe(
        self,
        key: Any,
        value: Any,
        timestamp_ms: int | None = None,
        headers: GivenHeaders = (),
        partition: int | None = None,
    ) -> None:
        """Write one record and process all that follows from it.

        The timestamp is the wall clock's unless one is given; the partition is the key's, as
        Kafka's clients choose it. Raises what ends the application (StreamsError), ConfigError for
        a topic that nobody reads, SerdeError for a key or a value that its serde refuses,
        ValueError for a negative timestamp or a partition that there is not.

        >>> driver.topic("orders").pipe("ann", 5, timestamp_ms=1_000)
        >>> debts.read().timestamp_ms
        1000
        """
        self._driver.append_and_process(
            [self._prepare_write(key, value, timestamp_ms, headers, partition)]
        )

    def pipe_many(
        self, records: Iterable[PipedRecord], *, start_ms: int | None = None, advance_ms: int = 0
    ) -> None:
        """Write each of these records and process all that follows from them.

        They are records, or tuples of key, value and, where they are wanted, timestamp and headers.
        Those without a timestamp have `start_ms` (by default the wall clock), and `advance_ms` more
        each. With a seed all are written before the first is processed. Raises as `pipe` does.

        >>> orders = driver.topic("orders")
        >>> orders.pipe_many([("ann", 5), ("bob", 50)], start_ms=1_000, advance_ms=10)
        >>> [(debt.value, debt.timestamp_ms) for debt in debts.read_all()]
        [(-5, 1000), (-50, 1010)]
        """
        self._driver.append_and_process(list(self._prepare_writes(records, start_ms, advance_ms)))

    def advance_time(self, ms: int | timedelta) -> None:
        """Let records that are piped without a time be so much later, from the wall clock on.

        It adds up over the calls on this object; another object of the topic has a time of its own.

        >>> orders = driver.topic("orders")
        >>> orders.advance_time(timedelta(seconds=5))
        >>> orders.pipe("ann", 5)
        >>> debts.read().timestamp_ms
        5000
        """
        self._advanced_ms += duration_to_ms(ms, "ms")

    def read(self) -> Record[Any, Any]:
        """Return the next unread record. Raises LookupError if there is none.

        >>> driver.topic("orders").pipe_many([("ann", 5), ("bob", 50)])
        >>> debts.read().key, debts.read().key
        ('ann', 'bob')
        """
        message = self._reader.read_next()
        if message is None:
            raise LookupError(
                f"topic {self.name!r} has no record that was not read (is_empty tells)"
            )
        return self._decode_record(message)

    def read_all(self) -> list[Record[Any, Any]]:
        """Return all unread records, in the order in which they were written.

        >>> driver.topic("orders").pipe("ann", 5)
        >>> [debt.value for debt in debts.read_all()]
        [-5]
        >>> debts.read_all()
        []
        """
        return [self._decode_record(message) for message in self._reader.read_rest()]

    def read_values(self) -> list[Any]:
        """Return the values of all unread records.

        >>> driver.topic("orders").pipe_many([("ann", 5), ("bob", 50)])
        >>> debts.read_values()
        [-5, -50]
        """
        return [record.value for record in self.read_all()]

    def read_pairs(self) -> list[tuple[Key, Value]]:
        """Return the keys and values of all unread records.

        >>> driver.topic("orders").pipe_many([("ann", 5), ("bob", 50)])
        >>> debts.read_pairs()
        [('ann', -5), ('bob', -50)]
        """
        return [(record.key, record.value) for record in self.read_all()]

    read_record = read
    read_records_to_list = read_all
    read_values_to_list = read_values
    read_key_values_to_list = read_pairs

    def read_key_values_to_map(self) -> dict[Any, Any]:
        """Return the last value of each key of all unread records; None where it has none.

        `read_table` begins at the beginning instead, and leaves out keys without a value.

        >>> driver.topic("orders").pipe_many([("ann", 5), ("bob", 50), ("ann", 7)])
        >>> debts.read_key_values_to_map()
        {'ann': -7, 'bob': -50}
        >>> debts.read_key_values_to_map()
        {}
        """
        return dict(self.read_pairs())

    def read_table(self) -> dict[Any, Any]:
        """Return the topic as a table: the last value of each key.

        Of all records since the beginning, also those that were read before. A record without a
        value removes its key.

        >>> driver.topic("orders").pipe_many([("ann", 5), ("bob", 50), ("ann", 7)])
        >>> debts.read_table()
        {'ann': -7, 'bob': -50}
        """
        table: dict[Any, Any] = {}
        for record in map(self._decode_record, self._reader.read_from_beginning()):
            try:
                if record.value is None:
                    table.pop(record.key, None)
                else:
                    table[record.key] = record.value
            except TypeError as error:
                raise TypeError(
                    f"topic {self.name!r} as a table: key {record.key!r} can't be one of a "
                    f"dictionary ({error}): use read_all()"
                ) from error
        return table

    @property
    def partitions(self) -> int:
        """Return how many partitions the topic has."""
        return self._cluster.partition_counts[self.name]

    @property
    def is_empty(self) -> bool:
        """Return whether all records were read."""
        return self._reader.is_exhausted()

    @property
    def _next_time_ms(self) -> int:
        return self._driver.now_ms() + self._advanced_ms

    def __repr__(self) -> str:
        return f"<topic {self.name!r} of {self.partitions} partitions>"

    def _prepare_writes(
        self, records: Iterable[PipedRecord], start_ms: int | None, advance_ms: int
    ) -> Iterator[Callable[[], None]]:
        """Yield for each record a function that appends it.

        Raises ValueError for what is no record.
        """
        time_ms = self._next_time_ms if start_ms is None else start_ms
        for record in records:
            match record:
                case Record():
                    yield self._prepare_write(
                        record.key, record.value, record.timestamp_ms, record.headers, None
                    )
                    continue
                case (key, value):
                    yield self._prepare_write(key, value, time_ms, (), None)
                case (key, value, given_ms):
                    yield self._prepare_write(key, value, given_ms, (), None)
                case (key, value, given_ms, headers):
                    yield self._prepare_write(key, value, given_ms, headers, None)
                case _:
                    raise ValueError(
                        f"{record!r} is no record: it is to be a Record, (key, value), "
                        "(key, value, timestamp_ms) or (key, value, timestamp_ms, headers)"
                    )
            time_ms += advance_ms

    def _prepare_write(
        self,
        key: Any,
        value: Any,
        timestamp_ms: int | None,
        headers: GivenHeaders,
        partition_number: int | None,
    ) -> Callable[[], None]:
        """Check a record and return a function that appends it.

        Raises ConfigError, ValueError or SerdeError, as `pipe` does.
        """
        if self._pipe_refusal:
            raise ConfigError(self._pipe_refusal)
        time_ms = self._next_time_ms if timestamp_ms is None else timestamp_ms
        if time_ms < 0:
            raise ValueError(f"topic {self.name!r}: a timestamp can't be negative: {time_ms}")
        key_bytes = self._serialize_part("key", self._input_serdes.key, key)
        value_bytes = self._serialize_part("value", self._input_serdes.value, value)
        count = self.partitions
        if partition_number is None:
            random = self._driver.random_partition
            partition_number = (
                random(count) if key_bytes is None else partition_for_key(key_bytes, count)
            )
        if not 0 <= partition_number < count:
            raise ValueError(
                f"topic {self.name!r} has no partition {partition_number}: it has {count} "
                "(TopologyTestDriver(app, partitions={...}) says how many)"
            )
        pairs = tuple(map(encode_header, to_headers(headers)))
        partition = Partition(self.name, partition_number)

        def append_record() -> None:
            self._cluster.append_record(partition, key_bytes, value_bytes, time_ms, pairs)

        return append_record

    def _serialize_part(self, role: str, serde: Serde[Any], value: Any) -> bytes | None:
        """Serialize a key or a value; None stays None. Raises SerdeError."""
        if value is None:
            return None
        try:
            return serde.serialize(value)
        except Exception as error:
            raise SerdeError(
                f"topic {self.name!r}: its {role} serde {serde.name!r} can't write {value!r:.200}: "
                f"{describe_serde_error(error)}"
            ) from error

    def _decode_record(self, message: Message) -> Record[Any, Any]:
        """Deserialize a message to a record. Raises SerdeError."""
        key, value = message.key(), message.value()
        try:
            key = None if key is None else self._output_serdes.key.deserialize(key)
            value = None if value is None else self._output_serdes.value.deserialize(value)
        except Exception as error:
            raise SerdeError(
                f"topic {self.name!r} can't be read with serdes key={self._output_serdes.key.name} "
                f"value={self._output_serdes.value.name}: {error}; key {message.key()!r:.200}, "
                f"value {message.value()!r:.200}. Name others: driver.topic(name, key=, value=)"
            ) from error
        return Record.from_message(key, value, message.timestamp()[1], message)
