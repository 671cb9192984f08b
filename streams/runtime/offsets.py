"""The metadata of a committed input offset: where each store of the task stood at that commit.

All input partitions of a task carry the positions at each of its commits, so one stable OffsetFetch
is a consistent cut. Beside them each carries the time of its own partition: the largest timestamp
that had been processed of it, from which stream time goes on after a restart; and the stream times
of the steps that have their own, by which windows close, and of the stores whose values expire; and
the number of the commit, which tells apart the commits of a task that has read nothing in between
(punctuations alone).

    version   text
    1         `{"v": 1, "c": {store: changelog position}}`, read and not written any more
    2         `M2.` and, in base64: partition time (int64, -1 none), then for each store with a
              changelog the CRC-32 of its name and its position (uint32, int64), then for each
              step with a time of its own that of `time of <step>` and the time, for each store
              with a ttl that of `time of expiry of <store>` and the time, then that of
              `number of the commit` and the number; big-endian

The number of a commit grows from one commit of a task to its next: it is the one before and 1, or
the wall clock in ms if that is more, so that it also grows over commits of an earlier release,
which writes none. It is left out where it would make the text longer than the brokers take,
so that no application is refused for it.

Names are hashed since what a broker takes is bounded (`offset.metadata.max.bytes`, 4 096 with the
NUL that librdkafka adds), and names are not: 255 stores of any name fit. Kafka Streams' metadata
(base64 of its version, the partition time and processors' figures: TopicPartitionMetadata.java)
name no positions; their time is used.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from zlib import crc32

import orjson

from streams.errors import ConfigError
from streams.topology.build import Subtopology, Topology

_MARK = "M2."
"""No base64 begins so, and no JSON."""
_TIME_BYTES = 8
_STORE = struct.Struct(">Iq")
_NO_TIME = -1
_COMMIT = "number of the commit"
"""Stands where others are names of stores, which have no blanks."""
_COMMIT_HASH = crc32(_COMMIT.encode())
METADATA_BYTES_MAX = 4_096
"""What a broker takes by default, with the NUL that librdkafka adds."""
_KAFKA_STREAMS = struct.Struct(">bq")
_KAFKA_STREAMS_VERSIONS = (1, 2)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the metadata of one committed offset say. `time_ms`: of the partition; -1: unknown."""

    time_ms: int = _NO_TIME
    _positions: Mapping[int, int] = field(default_factory=dict)

    def position_of(self, store: str) -> int | None:
        """The first changelog offset that was not in the store; None if nothing is said of it."""
        return self._positions.get(_hash(store))

    def time_of(self, step: str) -> int:
        """The stream time of a step that has its own; -1: unknown."""
        return self._positions.get(_hash(_time_of(step)), _NO_TIME)

    @property
    def commit_number(self) -> int | None:
        """The number of the commit, larger than that of the task's commit before; None if nothing
        is said of it."""
        return self._positions.get(_COMMIT_HASH)


def encode_metadata(
    positions: Mapping[str, int],
    time_ms: int = _NO_TIME,
    step_times: Mapping[str, int] | None = None,
    commit_number: int | None = None,
    bytes_max: int = METADATA_BYTES_MAX,
) -> str:
    """`positions`: for each store the first changelog offset that is not in it. `step_times`: the
    stream time in ms of each step that has its own. `commit_number`: None: nothing is said of it;
    nor if the text with its NUL would be longer than `bytes_max`."""
    data = bytearray(time_ms.to_bytes(_TIME_BYTES, "big", signed=True))
    for store, position in positions.items():
        data += _STORE.pack(_hash(store), position)
    for step, step_ms in (step_times or {}).items():
        data += _STORE.pack(_hash(_time_of(step)), step_ms)
    if commit_number is not None and _size(len(data) + _STORE.size) <= bytes_max:
        data += _STORE.pack(_COMMIT_HASH, commit_number)
    return _text(data)


def decode_metadata(text: str) -> Metadata:
    """What is said; nothing where it is not ours nor Kafka Streams' (a tool's, a later one's)."""
    if text.startswith(_MARK):
        return _decode_ours(_base64(text.removeprefix(_MARK)))
    if text.startswith("{"):
        return _decode_version_1(text)
    data = _base64(text)
    if len(data) >= _KAFKA_STREAMS.size and data[0] in _KAFKA_STREAMS_VERSIONS:
        return Metadata(_KAFKA_STREAMS.unpack_from(data)[1])
    return Metadata()


def check_sizes(topology: Topology, limit_bytes: int) -> None:
    """`limit_bytes`: what the brokers take (`offset.metadata.max.bytes`). Raises ConfigError naming
    the sub-topologies whose offsets would carry more."""
    problems = []
    for sub in topology.subtopologies:
        names = _logged(sub)
        steps = sub.timed_steps
        size = _size(_TIME_BYTES + _STORE.size * (len(names) + len(steps)))
        if size > limit_bytes:
            problems.append(
                f"sub-topology {sub.number} has {len(names)} stores ({_some(names)}), whose "
                f"positions go with each committed offset: {size} bytes, and the brokers take "
                f"{limit_bytes} (offset.metadata.max.bytes). Raise that, or split the sub-topology "
                "by a repartition"
            )
        if clash := _clash([*names, *map(_time_of, steps), _COMMIT]):
            problems.append(
                f"{clash[0]!r} and {clash[1]!r} of sub-topology {sub.number} have the same "
                "CRC-32, by which committed offsets name them: give one of them another name"
            )
    if problems:
        raise ConfigError("; ".join(problems))


def _size(data_bytes: int) -> int:
    """Return how many bytes a broker gets for so many: base64, and librdkafka's closing NUL."""
    return len(_MARK) + (data_bytes + 2) // 3 * 4 + 1


def _text(data: bytes | bytearray) -> str:
    return _MARK + base64.b64encode(data).decode()


def _decode_ours(data: bytes) -> Metadata:
    stores = data[_TIME_BYTES:]
    if len(data) < _TIME_BYTES or len(stores) % _STORE.size:
        return Metadata()
    time_ms = int.from_bytes(data[:_TIME_BYTES], "big", signed=True)
    return Metadata(time_ms, dict(_STORE.iter_unpack(stores)))


def _decode_version_1(text: str) -> Metadata:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return Metadata()
    if found.get("v") != 1 or not isinstance(found.get("c"), dict):
        return Metadata()
    return Metadata(_NO_TIME, {_hash(store): int(at) for store, at in found["c"].items()})


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _hash(store: str) -> int:
    return crc32(store.encode())


def _time_of(step: str) -> str:
    """What stands for the time of a step where others are names of stores, which have no blanks."""
    return f"time of {step}"


def _logged(sub: Subtopology) -> list[str]:
    """Where a table's own topic takes the place of a changelog, the offset itself says it."""
    return [spec.name for spec in sub.stores if spec.logged and spec.source_topic is None]


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _clash(names: Iterable[str]) -> tuple[str, str] | None:
    seen: dict[int, str] = {}
    for name in names:
        if (other := seen.setdefault(_hash(name), name)) != name:
            return other, name
    return None
