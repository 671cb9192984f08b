"""Encode and decode ConsumerProtocol: a member's subscription and assignment, versions 0 to 3.

A leader reads the subscriptions out of its JoinGroup response and writes the assignments into its
SyncGroup request. Version 1 has the owned partitions (KIP-429), 2 their generation, 3 the rack
(KIP-881); an assignment is the same in all. What has a newer version is read as version 3: fields
are only ever added at the end.
Source: ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json, ConsumerProtocol.java.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from coordinator.assignors.subscriptions import NO_GENERATION, ConsumerSubscription, TopicPartition
from coordinator.shard.record_fields import FieldReader, FieldWriter, Version

PROTOCOL_TYPE = "consumer"
NEWEST_VERSION = 3

UserData: TypeAlias = bytes


def encode_subscription(subscription: ConsumerSubscription, version: int = NEWEST_VERSION) -> bytes:
    """Encode a subscription in this version; fields that it doesn't have are left out.

    Topics and owned partitions are sorted.
    """
    writer = FieldWriter(version)
    writer.write_string_array(sorted(subscription.topics))
    writer.write_nullable_bytes(subscription.user_data)
    if version >= 1:
        write_partitions(writer, sorted(subscription.owned))
    if version >= 2:
        writer.write_int32(subscription.generation)
    if version >= 3:
        writer.write_nullable_string(subscription.rack_id)
    return writer.to_bytes()


def decode_subscription(data: bytes) -> ConsumerSubscription:
    """Decode a member's subscription; raise ValueError for bytes that are none."""
    with _explain_decode_errors(data):
        reader, version = _open_reader(data)
        topics = reader.read_string_array()
        user_data = reader.read_nullable_bytes()
        owned = read_partitions(reader) if version >= 1 else []
        generation = reader.read_int32() if version >= 2 else NO_GENERATION
        rack_id = reader.read_nullable_string() if version >= 3 else None
    return ConsumerSubscription(
        topics, user_data, owned, max(generation, NO_GENERATION), rack_id or None
    )


def decode_topics(data: bytes) -> tuple[str, ...]:
    """Decode only the topics of a subscription, of any version.

    No more is read of it than version 0 has, with which every other begins, also one that a newer
    client may have. Raises ValueError for bytes that are not a subscription.
    """
    with _explain_decode_errors(data):
        reader = FieldReader(data)
        reader.read_int16()  # its version, whatever it is
        topics = reader.read_string_array()
        reader.read_nullable_bytes()  # its user data
    return topics


def encode_assignment(
    partitions: Iterable[TopicPartition],
    user_data: bytes | None = None,
    version: int = NEWEST_VERSION,
) -> bytes:
    """Encode a member's assignment, with topics in the order of their first partitions.

    Partitions of a topic are in the order given.
    """
    writer = FieldWriter(version)
    write_partitions(writer, partitions)
    writer.write_nullable_bytes(user_data)
    return writer.to_bytes()


def decode_assignment(data: bytes) -> tuple[list[TopicPartition], UserData | None]:
    """Decode the partitions and user data of an assignment; raise ValueError for other bytes."""
    with _explain_decode_errors(data):
        reader, _ = _open_reader(data)
        return read_partitions(reader), reader.read_nullable_bytes()


def write_partitions(
    writer: FieldWriter, partitions: Iterable[TopicPartition], topics: Sequence[str] = ()
) -> None:
    """Write an array of topics with their partitions; `topics` come first, in this order."""
    by_topic: dict[str, list[int]] = {topic: [] for topic in topics}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    writer.write_array_length(len(by_topic))
    for topic, numbers in by_topic.items():
        writer.write_nullable_string(topic)
        writer.write_int32_array(numbers)


def read_partitions(reader: FieldReader) -> list[TopicPartition]:
    """Read an array of topics with their partitions as (topic, partition) pairs."""
    return [
        (topic, partition)
        for _ in range(reader.read_array_length())
        for topic in [reader.read_string()]
        for partition in reader.read_int32_array()
    ]


def _open_reader(data: bytes) -> tuple[FieldReader, Version]:
    reader = FieldReader(data)
    version = reader.read_int16()
    if version < 0:
        raise ValueError(f"version {version}")
    return reader, version


@contextmanager
def _explain_decode_errors(data: bytes) -> Iterator[None]:
    """Raise a ValueError that shows the bytes in place of one from decoding them."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"not of ConsumerProtocol ({error}): {data!r:.200}") from error
