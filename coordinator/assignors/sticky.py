"""Assign like the `sticky` assignor: as balanced as can be, and few partitions move.

It is for eager members, who give everything up before they join: what they had is in the user data.
That is in Kafka's format: an array of topics with their partitions, then, since version 1, the
generation; neither says its version.
Source: KIP-54, KIP-341, StickyAssignor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from coordinator.assignors.consumer_protocol import read_partitions, write_partitions
from coordinator.assignors.java_order import sort_like_computed_hash_map
from coordinator.assignors.stickiness import sticky_assignment
from coordinator.assignors.stickiness.claims import OwnershipClaim
from coordinator.assignors.subscriptions import (
    NO_GENERATION,
    Assignment,
    ConsumerSubscription,
    Members,
    TopicPartition,
    Topics,
)
from coordinator.shard.record_fields import FieldReader, FieldWriter

NAME = "sticky"

Generation: TypeAlias = int


def assign(members: Members, topics: Topics) -> Assignment:
    """Return the partitions of each member, balanced, with as few moves as possible.

    See `subscriptions` for the contract.
    """
    assignment, _ = sticky_assignment.assign_sticky(members, topics, _read_claim)
    return assignment


def encode_user_data(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """Encode a member's last assignment and its generation for the next leader."""
    writer = FieldWriter.without_version()
    write_partitions(
        writer, partitions, sort_like_computed_hash_map(topic for topic, _ in partitions)
    )
    writer.write_int32(generation)
    return writer.to_bytes()


def decode_user_data(data: bytes) -> tuple[Sequence[TopicPartition], Generation]:
    """Decode partitions and generation (-1 in version 0); what can't be read counts as nothing."""
    reader = FieldReader(data)
    try:
        partitions = read_partitions(reader)
    except ValueError:
        return (), NO_GENERATION
    try:
        return partitions, reader.read_int32()
    except ValueError:
        return partitions, NO_GENERATION


def _read_claim(subscription: ConsumerSubscription) -> OwnershipClaim:
    return OwnershipClaim(*decode_user_data(subscription.user_data or b""))
