"""Serialise the messages between the two sides of a foreign-key join (KIP-213).

    subscription   version (its high bit: no hash), instruction, hash (16), key of the row,
                   partition of the row (int32; from version 1 on)
    response       version (its high bit: no hash), hash (16), value of the other table, if any
    combined key   length of the foreign key (int32), foreign key, key of the row

Numbers are big-endian. Version 1 of subscriptions is written, 0 is read too (Kafka Streams before
3.4). Source: SubscriptionWrapperSerde, SubscriptionResponseWrapperSerde, CombinedKeySchema.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from streams.serdes.described_types import (
    DescribedType,
    describe_hash_of_type,
    describe_tuple_of_types,
)
from streams.serdes.serde import Field, Serde

Version: TypeAlias = int
ValueHash: TypeAlias = bytes
NextIndex: TypeAlias = int

_VERSION = 1
_ANSWER_VERSION = 0
_NO_HASH = 0x80
_HASH_BYTES = 16
_pack_int = struct.Struct(">i").pack
_unpack_int = struct.Struct(">i").unpack_from
_new_tuple = tuple.__new__
"""Makes a named tuple in two thirds of the time that its own constructor takes."""


class SubscriptionInstruction(IntEnum):
    """Says whether a row subscribes or unsubscribes, and whether it gets a response."""

    UNSUBSCRIBE = 0
    """DELETE_KEY_NO_PROPAGATE: no response."""
    UNSUBSCRIBE_AND_RESPOND = 1
    """DELETE_KEY_AND_PROPAGATE: the response has no value."""
    SUBSCRIBE_AND_RESPOND = 2
    """PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE: subscribe; there is always a response."""
    SUBSCRIBE_RESPOND_IF_FOUND = 3
    """PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE: subscribe; no response if there is no value."""


_INSTRUCTIONS = tuple(SubscriptionInstruction)


class SubscriptionWrapper(NamedTuple):
    """Requests the value of a row's foreign key, and carries the hash of the row's value.

    `hash` is None if the row was deleted. `partition` is the row's; None: of version 0.
    """

    hash: bytes | None
    instruction: SubscriptionInstruction
    key: Any
    partition: int | None


class SubscriptionResponseWrapper(NamedTuple):
    """Carries the value of a foreign key, None if there is none, and the hash of the subscription.

    The partition is not written: it chooses the partition to which the response goes.
    """

    hash: bytes | None
    value: Any
    partition: int | None


def create_subscription_serde(
    row_key_serde: Serde[Any], row_type: DescribedType | None = None
) -> Serde[SubscriptionWrapper]:
    """Return the serde of SubscriptionWrapper, with the serde of the rows' keys.

    `row_type` is the type of the rows, whose bytes are hashed.
    """
    serialize_key, deserialize_key = row_key_serde.serialize, row_key_serde.deserialize

    def serialize_subscription(asks: SubscriptionWrapper) -> bytes:
        row_hash, instruction, row, partition = asks
        version = 0 if partition is None else _VERSION
        end = b"" if partition is None else _pack_int(partition)
        if row_hash is None:
            return bytes((version | _NO_HASH, instruction)) + serialize_key(row) + end
        return bytes((version, instruction)) + row_hash + serialize_key(row) + end

    def deserialize_subscription(data: bytes) -> SubscriptionWrapper:
        version, row_hash, at = _read_version_and_hash(data, 2, _VERSION)
        end = len(data) if version == 0 else len(data) - 4
        if end < at or data[1] >= len(_INSTRUCTIONS):
            raise ValueError(f"{data[:20]!r} is no subscription")
        partition = None if version == 0 else _unpack_int(data, end)[0]
        return _new_tuple(
            SubscriptionWrapper,
            (row_hash, _INSTRUCTIONS[data[1]], deserialize_key(data[at:end]), partition),
        )

    return Serde(
        f"subscription({row_key_serde.name})",
        serialize_subscription,
        deserialize_subscription,
        message_type=describe_tuple_of_types(
            row_key_serde.message_type, describe_hash_of_type(row_type)
        ),
    )


def create_response_serde(value_serde: Serde[Any]) -> Serde[SubscriptionResponseWrapper]:
    """Return the serde of SubscriptionResponseWrapper, with the serde of the other table's values.

    A value without bytes, as an empty text, is read as None: as in Kafka Streams, whose format has
    no other sign of it (SubscriptionResponseWrapperSerde).
    """
    serialize_value, deserialize_value = value_serde.serialize, value_serde.deserialize

    def serialize_response(answers: SubscriptionResponseWrapper) -> bytes:
        row_hash, found, _ = answers
        written = b"" if found is None else serialize_value(found)
        if row_hash is None:
            return bytes((_ANSWER_VERSION | _NO_HASH,)) + written
        return bytes((_ANSWER_VERSION,)) + row_hash + written

    def deserialize_response(data: bytes) -> SubscriptionResponseWrapper:
        _, row_hash, at = _read_version_and_hash(data, 1, _ANSWER_VERSION)
        found = deserialize_value(data[at:]) if at < len(data) else None
        return _new_tuple(SubscriptionResponseWrapper, (row_hash, found, None))

    def bind_to_topic(topic: str, field: Field) -> Serde[SubscriptionResponseWrapper]:
        return create_response_serde(value_serde.for_topic(topic, field))

    binder = None if value_serde.binder is None else bind_to_topic
    return Serde(
        f"answer({value_serde.name})",
        serialize_response,
        deserialize_response,
        binder,
        message_type=value_serde.message_type,
    )


def _read_version_and_hash(
    data: bytes, hash_index: int, newest_version: int
) -> tuple[Version, ValueHash | None, NextIndex]:
    """Return version and hash of a message, and the index of the byte after them."""
    hash_end = hash_index + _HASH_BYTES
    if len(data) >= hash_end and data[0] <= newest_version:
        return data[0], data[hash_index:hash_end], hash_end
    if len(data) < hash_index:
        raise ValueError(f"{data!r} is too short")
    version = data[0] & ~_NO_HASH
    if version > newest_version:
        raise ValueError(
            f"version {version} is of a later release: at most {newest_version} is known"
        )
    if data[0] & _NO_HASH:
        return version, None, hash_index
    raise ValueError(f"{len(data)} bytes are too few for a hash")


def encode_combined_key_prefix(foreign_key: bytes) -> bytes:
    """Return the bytes with which all combined keys of a foreign key begin."""
    return _pack_int(len(foreign_key)) + foreign_key
