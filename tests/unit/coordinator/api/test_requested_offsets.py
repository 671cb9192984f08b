"""Test what is read from a request to commit: offsets to commit, and codes for the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema

from coordinator.api import offset_commit
from coordinator.api.requested_offsets import RequestedOffsets
from coordinator.errors import Code
from coordinator.offsets.commit import OffsetColumns, OffsetToCommit
from coordinator.wire.codec import build_entity
from tests.unit.coordinator.api.apis import in_versions

TOPIC_ID = UUID(int=7)
WORDS: Any = SimpleNamespace(name="words", id=TOPIC_ID, partitions=[None, None])  # 2 partitions
UNKNOWN = Code.UNKNOWN_TOPIC_OR_PARTITION


def read_offsets(
    version: int, *topics: dict[int, str | None], name: str = "words"
) -> RequestedOffsets:
    """Read a request that commits offset 40 + partition, with this metadata by partition."""
    requested = [
        {
            "name": name,
            "topic_id": TOPIC_ID,
            "partitions": [
                {
                    "partition_index": partition,
                    "committed_offset": 40 + partition,
                    "committed_leader_epoch": 3,
                    "committed_metadata": metadata,
                }
                for partition, metadata in partitions.items()
            ],
        }
        for partitions in topics
    ]
    entity_type = load_request_schema(offset_commit.API_KEY, version)
    fields = {"group_id": "g", "member_id": "", "topics": requested, "retention_time": -1}
    request: Any = build_entity(entity_type, fields)
    return RequestedOffsets(
        request.topics,
        [WORDS if name == "words" else None for _ in topics],
        Code.UNKNOWN_TOPIC_OR_PARTITION,
    )


def offset(version: int, partition: int, metadata: str = "") -> OffsetToCommit:
    leader_epoch = 3 if version >= 6 else -1
    return OffsetToCommit("words", partition, 40 + partition, leader_epoch, metadata, TOPIC_ID)


def codes(requested: RequestedOffsets) -> list[list[tuple[int, int]]]:
    """Return (partition, code) of each topic of the response, if every offset is committed."""
    topics = requested.build_topics([Code.NONE] * len(requested.offsets))
    return [
        [(each["partition_index"], each["error_code"]) for each in topic["partitions"]]
        for topic in topics
    ]


@in_versions(offset_commit)
@pytest.mark.parametrize("empty", ["", None])
def test_offsets_of_one_topic_without_metadata_are_read_as_columns(
    version: int, empty: str | None
) -> None:
    requested = read_offsets(version, {1: empty, 0: empty})
    assert isinstance(requested.offsets, OffsetColumns)
    assert list(requested.offsets) == [offset(version, 1), offset(version, 0)]
    assert offset(version, 0) in requested.offsets
    assert requested.all_known
    assert requested.requested_partitions == (
        ("words" if version < 10 else None, TOPIC_ID if version >= 10 else None, (1, 0)),
    )
    assert codes(requested) == [[(1, 0), (0, 0)]]


@in_versions(offset_commit)
def test_metadata_of_any_partition_is_read(version: int) -> None:
    requested = read_offsets(version, {0: "", 1: "m"})
    assert list(requested.offsets) == [offset(version, 0), offset(version, 1, "m")]
    assert requested.all_known


@in_versions(offset_commit)
@pytest.mark.parametrize("partition", [-1, 2])
def test_a_partition_that_does_not_exist_is_left_out(version: int, partition: int) -> None:
    requested = read_offsets(version, {0: "", partition: "", 1: ""})
    assert list(requested.offsets) == [offset(version, 0), offset(version, 1)]
    assert not requested.all_known
    assert codes(requested) == [[(0, 0), (partition, UNKNOWN), (1, 0)]]


@in_versions(offset_commit)
def test_offsets_of_several_topics_are_read(version: int) -> None:
    requested = read_offsets(version, {0: ""}, {1: ""})
    assert list(requested.offsets) == [offset(version, 0), offset(version, 1)]
    assert len(requested.requested_partitions) == 2
    assert codes(requested) == [[(0, 0)], [(1, 0)]]


@in_versions(offset_commit)
def test_a_topic_without_partitions_has_nothing_to_commit(version: int) -> None:
    requested = read_offsets(version, {})
    assert not list(requested.offsets)
    assert codes(requested) == [[]]


@in_versions(offset_commit)
def test_no_offset_of_an_unknown_topic_is_read(version: int) -> None:
    requested = read_offsets(version, {0: "", 1: ""}, name="none")
    assert not list(requested.offsets)
    assert not requested.all_known
    assert codes(requested) == [[(0, UNKNOWN), (1, UNKNOWN)]]
