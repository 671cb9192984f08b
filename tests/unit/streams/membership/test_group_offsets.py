"""Test that a group's offsets are committed as this member and read stable, over its connection."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kio.schema.errors import ErrorCode

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import StreamsError
from streams.membership.connection import ConnectionLost
from tests.unit.streams.membership.fakes import (
    COMMIT,
    COORDINATOR,
    FETCH,
    FIND,
    JOIN,
    Worker,
    create_coordinator_response,
    create_join_response,
)

OFFSETS = [
    (Partition("in", 0), OffsetAndMetadata(7, "zero")),
    (Partition("in", 1), OffsetAndMetadata(9, "one")),
    (Partition("other", 0), OffsetAndMetadata(1, "")),
]
IN = [Partition("in", 0), Partition("in", 1), Partition("in", 2)]


def committing(*codes: ErrorCode) -> dict[str, object]:
    """Return an OffsetCommit response with an error code for each partition of `in`."""
    parts = [SimpleNamespace(error_code=code) for code in codes]
    return {"topics": [SimpleNamespace(name="in", partitions=parts)]}


def fetching(*parts: tuple[ErrorCode, int, str | None]) -> dict[str, object]:
    """Return an OffsetFetch response: error code, offset and metadata of each partition of `in`."""
    found = [
        SimpleNamespace(
            partition_index=index, error_code=code, committed_offset=offset, metadata=metadata
        )
        for index, (code, offset, metadata) in enumerate(parts)
    ]
    return {"topics": [SimpleNamespace(name="in", partitions=found)]}


def test_offsets_are_committed_by_topic_as_the_member_of_this_generation(worker: Worker) -> None:
    worker.coordinator.answer(JOIN, create_join_response(4, "member-7"))
    worker.join()
    worker.coordinator.answer(COMMIT, committing(ErrorCode.none, ErrorCode.none))
    assert worker.member.try_commit_offsets(OFFSETS)
    (sent,) = worker.coordinator.sent(COMMIT)
    assert (sent.group_id, sent.generation_id_or_member_epoch) == ("a", 4)
    assert (sent.member_id, sent.group_instance_id) == ("member-7", "worker-0")
    assert {
        (topic.name, each.partition_index): (each.committed_offset, each.committed_metadata)
        for topic in sent.topics
        for each in topic.partitions
    } == {("in", 0): (7, "zero"), ("in", 1): (9, "one"), ("other", 0): (1, "")}


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.illegal_generation,
        ErrorCode.unknown_member_id,
        ErrorCode.fenced_instance_id,
        ErrorCode.rebalance_in_progress,
    ],
)
def test_a_group_that_has_moved_on_does_not_accept_offsets(worker: Worker, code: ErrorCode) -> None:
    worker.join()
    worker.coordinator.answer(COMMIT, committing(ErrorCode.none, code))
    assert not worker.member.try_commit_offsets(OFFSETS)


def test_offsets_that_are_refused_for_good_end_the_thread(worker: Worker) -> None:
    worker.join()
    worker.coordinator.answer(COMMIT, committing(ErrorCode.offset_metadata_too_large))
    with pytest.raises(StreamsError, match="can't be committed: offset_metadata_too_large"):
        worker.member.try_commit_offsets(OFFSETS)


def test_a_commit_after_a_lost_connection_goes_over_a_new_one(worker: Worker) -> None:
    worker.join()
    worker.coordinator.answer(COMMIT, ConnectionLost("gone"), committing(ErrorCode.none))
    with pytest.raises(ConnectionLost):
        worker.member.try_commit_offsets(OFFSETS)
    assert worker.member.try_commit_offsets(OFFSETS)
    assert worker.coordinator.dialled == [None, COORDINATOR] * 3  # one for the join


def test_a_commit_to_a_coordinator_that_moved_finds_the_new_one(worker: Worker) -> None:
    worker.join()
    moved = committing(ErrorCode.not_coordinator)
    worker.coordinator.answer(COMMIT, moved, committing(ErrorCode.none))
    with pytest.raises(ConnectionLost, match="not_coordinator"):
        worker.member.try_commit_offsets(OFFSETS)
    assert worker.member.try_commit_offsets(OFFSETS)
    assert worker.coordinator.dialled == [None, COORDINATOR] * 3  # one for the join


def test_offsets_are_read_stable_with_their_metadata(worker: Worker) -> None:
    answer = fetching((ErrorCode.none, 7, "zero"), (ErrorCode.none, 9, None))
    worker.coordinator.answer(FETCH, answer)
    found = worker.member.fetch_committed_offsets(IN)
    assert found.offsets == {IN[0]: OffsetAndMetadata(7, "zero"), IN[1]: OffsetAndMetadata(9, "")}
    assert found.pending == []
    (sent,) = worker.coordinator.sent(FETCH)
    assert sent.require_stable
    (topic,) = sent.topics
    assert (topic.name, topic.partition_indexes) == ("in", (0, 1, 2))


def test_a_closing_nul_that_librdkafka_sent_along_is_no_metadata(worker: Worker) -> None:
    worker.coordinator.answer(FETCH, fetching((ErrorCode.none, 7, "zero\0")))
    assert worker.member.fetch_committed_offsets(IN).offsets[IN[0]].metadata == "zero"


def test_offsets_that_a_transaction_may_still_change_are_pending(worker: Worker) -> None:
    pending = (ErrorCode.unstable_offset_commit, -1, "")
    worker.coordinator.answer(FETCH, fetching((ErrorCode.none, 7, ""), pending))
    found = worker.member.fetch_committed_offsets(IN)
    assert found == ({IN[0]: OffsetAndMetadata(7, "")}, [IN[1]])


def test_a_partition_without_an_offset_is_neither_committed_nor_pending(worker: Worker) -> None:
    worker.coordinator.answer(FETCH, fetching((ErrorCode.none, -1, "")))
    assert worker.member.fetch_committed_offsets(IN) == ({}, [])


def test_offsets_that_can_not_be_read_for_good_end_the_thread(worker: Worker) -> None:
    refused = fetching((ErrorCode.unknown_topic_or_partition, -1, ""))
    worker.coordinator.answer(FETCH, refused)
    with pytest.raises(StreamsError, match="can't be read: unknown_topic_or_partition"):
        worker.member.fetch_committed_offsets(IN)


def test_offsets_are_read_from_the_coordinator_that_has_them_now(worker: Worker) -> None:
    moved = {"topics": (), "error_code": ErrorCode.not_coordinator}
    worker.coordinator.answer(FETCH, moved, fetching((ErrorCode.none, 7, "")))
    with pytest.raises(ConnectionLost):
        worker.member.fetch_committed_offsets(IN)
    assert worker.member.fetch_committed_offsets(IN).offsets == {IN[0]: OffsetAndMetadata(7, "")}
    assert worker.coordinator.dialled == [*[None, COORDINATOR] * 2, None]


def test_offsets_of_a_broker_that_another_server_does_not_call_coordinator_are_not_taken(
    worker: Worker,
) -> None:
    """A broker that is cut off from the others answers with offsets from before that."""
    moved = {"node_id": 2, "host": "other", "port": 9092, "error_message": None}
    worker.coordinator.answer(FIND, create_coordinator_response(), moved)
    worker.coordinator.answer(FETCH, fetching((ErrorCode.none, 3, "")))
    with pytest.raises(ConnectionLost, match="is other:9092, and another broker has answered"):
        worker.member.fetch_committed_offsets(IN)
    assert not worker.coordinator.open
