"""Encode the metadata of a committed input offset: the changelog positions of a task's stores.

All input partitions of a task carry the positions at each of its commits, so one stable OffsetFetch
is a consistent cut: one moment of all tasks. Each also carries the time of its own partition: the
largest timestamp that had been processed of it, from which stream time goes on after a restart; and
the stream times of the steps that have their own, by which windows close, and of the stores whose
values expire; and the number of the commit, which tells apart the commits of a task that has read
nothing in between (punctuations alone).

    version   text
    2         `M2.` and, in base64: partition time (int64, -1 none), then for each store with a
              changelog the CRC-32 of its name and its position (uint32, int64), then for each
              step with a time of its own that of `time of <step>` and the time, for each store
              with a ttl that of `time of expiry of <store>` and the time, other entries, that of
              `number of the commit` and the number, then, where a task has several inputs, for
              each that of `input <topic>` and 1, then, where a reset policy chose where a partition
              began, those of `first start` and `partitions at the first start`, and where that was
              not 0, that of `offset at the first start`, then for each input that of
              `id of <topic>` and a hash of the topic's id, then for each store with a changelog
              that of `id of the changelog of <store>` and such a hash; big-endian

The number of a commit grows from one commit of a task to its next: it is the one before and 1, or
the wall clock in ms if that is more, so that it also grows over commits of others, which name
none. It, the first start and the ids of topics are left out where they would make the
text longer than the brokers take, so that no application is refused for them.

Names are hashed since what a broker takes is bounded (`offset.metadata.max.bytes`, 4 096 with the
NUL that librdkafka adds), and names are not: 255 stores of any name fit. Kafka Streams' metadata
(base64 of its version, the partition time and processors' figures: TopicPartitionMetadata.java)
name no positions; their time is used.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

_VERSION_2_PREFIX = "M2."
"""The prefix of version 2, the only one; no base64 and no JSON begins with it."""
_ANY_VERSION = re.compile(r"M(\d+)\.")
_VERSION = 2
_TIME_BYTES = 8
_HASHED_POSITION = struct.Struct(">Iq")
_NO_TIME = -1
_COMMIT_NUMBER_NAME = "number of the commit"
"""The name under which the number of the commit is stored; names of stores have no blanks."""
_COMMIT_HASH = crc32(_COMMIT_NUMBER_NAME.encode())
_MARK_NAMES = ("at least once", "reset was begun", "reset is done")
"""The names of entries that say how, or by whom, an offset was committed."""
_AT_LEAST_ONCE_HASH, _RESET_BEGUN_HASH, _RESET_DONE_HASH = (
    crc32(name.encode()) for name in _MARK_NAMES
)
_FIRST_START_NAMES = (
    "first start",
    "partitions at the first start",
    "offset at the first start",
)
_FIRST_START_HASH, _FIRST_COUNT_HASH, _FIRST_OFFSET_HASH = (
    crc32(name.encode()) for name in _FIRST_START_NAMES
)
METADATA_BYTES_MAX = 4_096
"""The brokers' default limit in bytes, which includes the NUL that librdkafka adds."""
_KAFKA_STREAMS = struct.Struct(">bq")
_KAFKA_STREAMS_VERSIONS = (1, 2)


class FirstStart(NamedTuple):
    """Says when the group first read a topic, in ms, and how many partitions that had then.

    `offset` is where it began in the partition of the committed offset: none below was processed.
    """

    at_ms: int
    partition_count: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """Holds the decoded metadata of one committed offset: store positions, times, commit number.

    `partition_time_ms` is the highest timestamp processed of the partition; -1 if unknown.
    """

    partition_time_ms: int = _NO_TIME
    _positions: Mapping[int, int] = field(default_factory=dict)

    @property
    def hashed_entries(self) -> Mapping[int, int]:
        """Return positions, times and all other entries by the CRC-32 of their names.

        For tests that commit other positions and keep the rest.
        """
        return self._positions

    def position_of_store(self, store: str) -> int | None:
        """Return the first changelog offset not in the store at the commit; None if unknown."""
        return self._positions.get(hash_name(store))

    def find_entry(self, name: str) -> int | None:
        """Return the value of an entry by its name; None if there is none."""
        return self._positions.get(hash_name(name))

    def time_of_step(self, step: str) -> int:
        """Return the stream time in ms of a step that has its own; -1 if unknown."""
        return self._positions.get(hash_name(_step_time_key(step)), _NO_TIME)

    def was_committed_with(self, topic: str) -> bool:
        """Return whether the offset was committed together with one of this topic."""
        return hash_name(_input_key(topic)) in self._positions

    @property
    def is_at_least_once(self) -> bool:
        """Return whether it was committed at least once, so that changelogs may be ahead of it."""
        return _AT_LEAST_ONCE_HASH in self._positions

    @property
    def is_reset(self) -> bool:
        """Return whether `millrace group reset` has set the offset: no store has a record yet."""
        return _RESET_DONE_HASH in self._positions

    @property
    def is_reset_begun(self) -> bool:
        """Return whether a reset has begun, and not ended."""
        return _RESET_BEGUN_HASH in self._positions

    @property
    def commit_number(self) -> int | None:
        """Return the number of the commit; None if unknown.

        It is larger than that of the task's commit before.
        """
        return self._positions.get(_COMMIT_HASH)

    def topic_id_hash(self, topic: str) -> int | None:
        """Return the hash of the id that an input of the task had at the commit; None if unknown.

        `hash_topic_id` makes it. It is unknown for a topic that was no input of the task, where
        the metadata had no room, and where the brokers have no topic ids.
        """
        return self._positions.get(hash_name(_topic_id_key(topic)))

    def changelog_id_hash(self, store: str) -> int | None:
        """Return the hash of the id that a store's changelog had at the commit; None if unknown."""
        return self._positions.get(hash_name(_changelog_id_key(store)))

    @property
    def first_start(self) -> FirstStart | None:
        """Return the group's first start with the topic of this offset; None if unknown.

        It is unknown where `auto_offset_reset` was `earliest`, and where there was no room for it.
        """
        at_ms, count = map(self._positions.get, (_FIRST_START_HASH, _FIRST_COUNT_HASH))
        if at_ms is None or count is None:
            return None
        return FirstStart(at_ms, count, self._positions.get(_FIRST_OFFSET_HASH, 0))


def encode_metadata(
    positions: Mapping[str, int],
    partition_time_ms: int = _NO_TIME,
    step_times: Mapping[str, int] | None = None,
    commit_number: int | None = None,
    bytes_max: int = METADATA_BYTES_MAX,
    input_topics: tuple[str, ...] = (),
    topic_ids: Mapping[str, int] | None = None,
    changelog_ids: Mapping[str, int] | None = None,
    *,
    is_at_least_once: bool = False,
    entries: Mapping[str, int] | None = None,
    first_start: FirstStart | None = None,
) -> str:
    """Encode positions, times, commit number and topic ids as the metadata of an offset.

    `positions` has for each store the first changelog offset that is not in it, `step_times` the
    stream time in ms of each step that has its own, `input_topics` the other inputs of the task,
    `topic_ids` the hash of the id of each input (`hash_topic_id`), `changelog_ids` those of the
    stores' changelogs, by store. `is_at_least_once`: it was committed without a transaction, so
    that changelogs may be ahead. `entries` are other values by name, for which there has to be room
    (`do_entries_fit`). `first_start` is that of the offset's topic. The guarantee, the number, the
    inputs, the first start and the ids are left out where the text with its NUL would be longer
    than `bytes_max`.
    """
    data = bytearray(partition_time_ms.to_bytes(_TIME_BYTES, "big", signed=True))
    for store, position in positions.items():
        data += _HASHED_POSITION.pack(hash_name(store), position)
    for step, step_ms in (step_times or {}).items():
        data += _HASHED_POSITION.pack(hash_name(_step_time_key(step)), step_ms)
    for name, value in (entries or {}).items():
        data += _HASHED_POSITION.pack(hash_name(name), value)
    if is_at_least_once and _has_room(data, bytes_max):
        data += _HASHED_POSITION.pack(_AT_LEAST_ONCE_HASH, 1)
    if commit_number is not None and _has_room(data, bytes_max):
        data += _HASHED_POSITION.pack(_COMMIT_HASH, commit_number)
    names = _encode_input_names(input_topics) if input_topics else b""
    if names and _compute_encoded_size_bytes(len(data) + len(names)) <= bytes_max:
        data += names
    if first_start is not None and _has_room(data, bytes_max, 2):
        data += _HASHED_POSITION.pack(_FIRST_START_HASH, first_start.at_ms)
        data += _HASHED_POSITION.pack(_FIRST_COUNT_HASH, first_start.partition_count)
        if first_start.offset and _has_room(data, bytes_max):
            data += _HASHED_POSITION.pack(_FIRST_OFFSET_HASH, first_start.offset)
    ids = {_topic_id_key(topic): each for topic, each in (topic_ids or {}).items()}
    ids |= {_changelog_id_key(store): each for store, each in (changelog_ids or {}).items()}
    for name, id_hash in ids.items():
        if not _has_room(data, bytes_max):
            break
        data += _HASHED_POSITION.pack(hash_name(name), id_hash)
    return _encode_text(data)


def decode_metadata(text: str) -> OffsetMetadata:
    """Decode the metadata of an offset, of Millrace or of Kafka Streams.

    Metadata of another writer, such as a tool or a later release, decode to unknown values.
    """
    if text.startswith(_VERSION_2_PREFIX):
        return _decode_version_2(_decode_base64(text.removeprefix(_VERSION_2_PREFIX)))
    data = _decode_base64(text)
    if len(data) >= _KAFKA_STREAMS.size and data[0] in _KAFKA_STREAMS_VERSIONS:
        return OffsetMetadata(_KAFKA_STREAMS.unpack_from(data)[1])
    return OffsetMetadata()


def has_changelog_positions(text: str) -> bool:
    """Return whether the metadata of an offset are in a format that names changelog positions."""
    return text.startswith(_VERSION_2_PREFIX)


def find_later_version(text: str) -> int | None:
    """Return the version of metadata that a later release has written; None for all others."""
    found = _ANY_VERSION.match(text)
    return int(found[1]) if found and int(found[1]) > _VERSION else None


def is_streams_metadata(text: str) -> bool:
    """Return whether Millrace, of this or a later release, or Kafka Streams wrote the metadata.

    Kafka's own tools and plain consumers leave them empty.
    """
    if _ANY_VERSION.match(text):
        return True
    data = _decode_base64(text)
    return len(data) >= _KAFKA_STREAMS.size and data[0] in _KAFKA_STREAMS_VERSIONS


def list_entry_names(
    changelog_stores: Iterable[str], steps: Iterable[str], inputs: Collection[str]
) -> list[str]:
    """Return the names of all entries that this module makes, but those of what has expired.

    `changelog_stores` have a changelog, `steps` a time of their own, `inputs` are topics.
    """
    stores = [*changelog_stores]
    return [
        *stores,
        *map(_step_time_key, steps),
        _COMMIT_NUMBER_NAME,
        *_MARK_NAMES,
        *_FIRST_START_NAMES,
        *map(_input_key, inputs),
        *map(_topic_id_key, inputs),
        *map(_changelog_id_key, stores),
    ]


def count_optional_entries(inputs: Collection[str], stores: Collection[str]) -> int:
    """Return how many entries at most are left out where there is no room for them."""
    return 5 + 2 * len(inputs) + len(stores)


def compute_entries_size_bytes(count: int) -> int:
    """Return the size in bytes of metadata with one time and `count` hashed positions."""
    return _compute_encoded_size_bytes(_TIME_BYTES + _HASHED_POSITION.size * count)


def do_entries_fit(count: int, bytes_max: int) -> bool:
    """Return whether metadata with one time and `count` hashed positions fit `bytes_max`."""
    return compute_entries_size_bytes(count) <= bytes_max


def _compute_encoded_size_bytes(data_bytes: int) -> int:
    """Return the size in bytes of encoded metadata, with prefix and librdkafka's NUL."""
    return len(_VERSION_2_PREFIX) + (data_bytes + 2) // 3 * 4 + 1


def _has_room(data: bytes | bytearray, bytes_max: int, entries: int = 1) -> bool:
    """Return whether metadata may have so many more entries."""
    return _compute_encoded_size_bytes(len(data) + _HASHED_POSITION.size * entries) <= bytes_max


def _encode_text(data: bytes | bytearray) -> str:
    return _VERSION_2_PREFIX + base64.b64encode(data).decode()


def _decode_version_2(data: bytes) -> OffsetMetadata:
    stores = data[_TIME_BYTES:]
    if len(data) < _TIME_BYTES or len(stores) % _HASHED_POSITION.size:
        return OffsetMetadata()
    time_ms = int.from_bytes(data[:_TIME_BYTES], "big", signed=True)
    return OffsetMetadata(time_ms, dict(_HASHED_POSITION.iter_unpack(stores)))


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def hash_name(name: str) -> int:
    """Return the CRC-32 by which the metadata name an entry."""
    return crc32(name.encode())


def _step_time_key(step: str) -> str:
    """Return the metadata key of a step's stream time, which can't equal the name of a store."""
    return f"time of {step}"


def _input_key(topic: str) -> str:
    """Return the metadata key that says that a topic was an input, which equals no store's name."""
    return f"input {topic}"


@lru_cache(maxsize=1_024)
def _encode_input_names(topics: tuple[str, ...]) -> bytes:
    """Encode the entries that name the inputs of a task, once for all of its commits."""
    return b"".join(_HASHED_POSITION.pack(hash_name(_input_key(t)), 1) for t in topics)


def _topic_id_key(topic: str) -> str:
    """Return the metadata key of a topic's id, which can't equal the name of a store."""
    return f"id of {topic}"


def _changelog_id_key(store: str) -> str:
    """Return the metadata key of the id of a store's changelog, which equals no store's name."""
    return f"id of the changelog of {store}"


RESET_BEGUN, RESET_DONE = (encode_metadata({name: 0}) for name in _MARK_NAMES[1:])
"""The metadata of offsets that `millrace group reset` commits, before it deletes and at its end."""
