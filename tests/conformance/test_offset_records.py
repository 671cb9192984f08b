"""Test the records of `__consumer_offsets` for commits, deletions and expiry of offsets."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.errors import Code
from coordinator.offsets.records import decode_offset_record
from coordinator.offsets.state import NEVER, OffsetCommitted, OffsetForgotten
from coordinator.shard.placement import partition_for
from tests.conformance import batches
from tests.conformance.calls import delete_groups, delete_offsets, fetch, metadata, topic_id
from tests.conformance.commits import commit
from tests.conformance.producers import Producer
from tests.conformance.wire import Client

HOUR_MS = 3_600_000
OFFSET_KEY, GROUP_KEY = b"\0\1", b"\0\2"


def written(client: Client, group: str) -> list[tuple[bytes, bytes | None]]:
    """Return the group's records, oldest first."""
    [topic] = metadata(client, "__consumer_offsets").topics
    partition = partition_for(group, len(topic.partitions))
    found: list[tuple[bytes, bytes | None]] = []
    offset = 0
    while True:
        data = fetch(client, "__consumer_offsets", offset, partition=partition).records
        read = list(batches.decode(data or b""))
        if not read:
            return found
        for batch in read:
            offset = batch.last_offset + 1
            if not batch.is_control:
                found += [(key, value) for key, value in batch.records if key and named(key, group)]


def named(key: bytes, group: str) -> bool:
    """Return whether a key, which begins with its type, is of this group."""
    return key[4 : 4 + int.from_bytes(key[2:4], "big")] == group.encode()


def last_offset(client: Client, group: str) -> tuple[Any, int]:
    """Return the last offset record of the group, and the version of its value."""
    key, value = [each for each in written(client, group) if each[0][:2] == OFFSET_KEY][-1]
    record = decode_offset_record(key, value)
    return record, -1 if value is None else int.from_bytes(value[:2], "big")


@pytest.mark.parametrize("version", range(2, 11))
def test_a_commit_is_written_with_the_id_of_its_topic(
    client: Client, group: str, topic: str, version: int
) -> None:
    asked = topic_id(client, topic) if version >= 10 else topic
    part: dict[str, Any] = {"partition_index": 0, "committed_metadata": "m"}
    if version >= 6:
        part["committed_leader_epoch"] = 0
    commit(client, version, group, {asked: [part]})
    record, written_in = last_offset(client, group)
    assert isinstance(record, OffsetCommitted)
    assert written_in == 4
    assert (record.group_id, record.topic, record.partition) == (group, topic, 0)
    assert (record.offset, record.metadata) == (5, "m")
    assert record.leader_epoch == (0 if version >= 6 else -1)
    assert record.topic_id == topic_id(client, topic)
    assert record.expires_at_ms == NEVER


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_wish_for_how_long_it_is_kept_is_written_as_the_time_when_it_expires(
    client: Client, group: str, topic: str, version: int
) -> None:
    commit(client, version, group, {topic: [0]}, retention_time=HOUR_MS)
    record, written_in = last_offset(client, group)
    assert written_in == 1
    assert record.expires_at_ms == record.committed_at_ms + HOUR_MS
    assert (record.topic_id, record.leader_epoch) == (None, -1)


@pytest.mark.parametrize("version", [0, 3, 5])
def test_an_offset_of_a_transaction_is_written_with_the_id_of_its_topic(
    client: Client, group: str, topic: str, transactional_id: str, version: int
) -> None:
    producer = Producer.init(client, transactional_id)
    if version < 5:
        producer.add_offsets(group)
    producer.stage_offset(group, topic, 7, metadata="m", version=version)
    record, written_in = last_offset(client, group)
    assert (written_in, record.topic_id) == (4, topic_id(client, topic))
    assert record.expires_at_ms == NEVER
    assert (record.offset, record.metadata, record.leader_epoch) == (7, "m", -1)
    producer.commit()


def test_a_deleted_offset_is_a_tombstone_and_one_that_is_not_there_is_nothing(
    client: Client, group: str, topic: str, other_topic: str
) -> None:
    commit(client, 9, group, {topic: [0]})
    delete_offsets(client, group, {topic: [0], other_topic: [0]})
    assert last_offset(client, group) == (OffsetForgotten(group, topic, 0), -1)
    assert len(written(client, group)) == 2


def test_a_group_ends_with_tombstones_for_its_offsets_pending_ones_too_and_then_for_itself(
    client: Client, group: str, topic: str, other_topic: str, transactional_id: str
) -> None:
    commit(client, 9, group, {topic: [0]})
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    for name in (topic, other_topic):
        producer.stage_offset(group, name, 7)
    before = len(written(client, group))
    assert delete_groups(client, group) == {group: Code.NONE}
    tombstones = written(client, group)[before:]
    assert [value for _, value in tombstones] == [None] * 3
    assert {decode_offset_record(key, None) for key, _ in tombstones[:2]} == {
        OffsetForgotten(group, topic, 0),
        OffsetForgotten(group, other_topic, 0),
    }
    assert tombstones[2][0][:2] == GROUP_KEY
    producer.abort()
