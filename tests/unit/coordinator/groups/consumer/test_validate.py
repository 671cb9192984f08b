"""Test whether a member may commit or fetch offsets, by its epoch and its assignment's epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from coordinator.errors import Code
from coordinator.groups.consumer.record_types import ClassicMemberMetadata
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember
from coordinator.groups.consumer.validate import validate_offset_commit, validate_offset_fetch
from coordinator.offsets.commit import CommittingMember, OffsetCommitCommand, OffsetToCommit
from tests.unit.coordinator.groups.consumer.members import GROUP, Consumer
from tests.unit.coordinator.world import World, code_of

T, U = UUID(int=1), UUID(int=2)
# It has got to its epoch, 5, with partitions that came at 3 and 5; it gives up one of 4.
MEMBER = ConsumerGroupMember(
    "m", epoch=5, previous_epoch=4, assigned={T: {0: 3, 1: 5}}, revoking={T: {2: 4}}
)
OLD = replace(MEMBER, member_id="old", classic=ClassicMemberMetadata(10_000, (("range", b""),)))
NOBODY = CommittingMember()


def group(*members: ConsumerGroupMember) -> ConsumerGroup:
    made = ConsumerGroup("g")
    made.members.update({member.member_id: member for member in members})
    return made


def by(epoch: int, member_id: str = "m", *, knows_epochs: bool = True) -> CommittingMember:
    return CommittingMember(generation=epoch, member_id=member_id, knows_epochs=knows_epochs)


def commit(
    committer: CommittingMember,
    *partitions: int,
    topic_id: UUID | None = T,
    transactional: bool = False,
) -> Code:
    """Return the code for a commit to a group that has one member of each protocol."""
    offsets = [OffsetToCommit("t", each, 1, topic_id=topic_id) for each in partitions]
    both = group(MEMBER, OLD)
    return code_of(validate_offset_commit, both, committer, offsets, transactional=transactional)


def test_a_member_commits_what_it_likes_at_its_own_epoch() -> None:
    assert commit(by(5), 0, 1, 2, 9) is Code.NONE
    assert commit(by(5), 0, topic_id=U) is Code.NONE


@pytest.mark.parametrize(
    ("epoch", "partitions", "code"),
    [
        (3, [0], Code.NONE),
        (4, [0, 2], Code.NONE),
        (2, [0], Code.STALE_MEMBER_EPOCH),
        (3, [0, 2], Code.STALE_MEMBER_EPOCH),
        (4, [0, 1], Code.STALE_MEMBER_EPOCH),
        (4, [0, 9], Code.STALE_MEMBER_EPOCH),
        (6, [0], Code.STALE_MEMBER_EPOCH),
        (6, [], Code.STALE_MEMBER_EPOCH),
    ],
)
def test_at_an_older_epoch_it_commits_what_it_had_then_and_has_still(
    epoch: int, partitions: list[int], code: Code
) -> None:
    assert commit(by(epoch), *partitions) is code


def test_a_topic_that_nobody_knows_is_nobody_s_at_an_older_epoch() -> None:
    for topic_id in (None, U):
        assert commit(by(4), 0, topic_id=topic_id) is Code.STALE_MEMBER_EPOCH


def test_a_stale_epoch_has_another_code_in_a_transaction_and_for_a_classic_member() -> None:
    assert commit(by(2), 0, transactional=True) is Code.ILLEGAL_GENERATION
    assert commit(by(2, "old"), 0) is Code.ILLEGAL_GENERATION


def test_who_speaks_the_consumer_protocol_commits_by_a_request_that_knows_epochs() -> None:
    assert commit(by(5, knows_epochs=False), 0) is Code.UNSUPPORTED_VERSION
    assert commit(by(5, knows_epochs=False), 0, transactional=True) is Code.NONE
    assert commit(by(5, "old", knows_epochs=False), 0) is Code.NONE


def test_who_is_no_member_commits_in_a_transaction_or_while_there_are_no_members() -> None:
    assert commit(by(5, "stranger"), 0) is Code.UNKNOWN_MEMBER_ID
    assert commit(by(5, "stranger"), 0, transactional=True) is Code.UNKNOWN_MEMBER_ID
    assert commit(NOBODY, 0) is Code.UNKNOWN_MEMBER_ID
    assert commit(NOBODY, 0, transactional=True) is Code.NONE
    for committer, code in ((NOBODY, Code.NONE), (by(5), Code.UNKNOWN_MEMBER_ID)):
        refused = code_of(validate_offset_commit, group(), committer, [], transactional=False)
        assert refused is code


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, Code.NONE),
        ("m", 5, Code.NONE),
        ("m", 4, Code.STALE_MEMBER_EPOCH),
        ("m", 6, Code.STALE_MEMBER_EPOCH),
        ("m", -1, Code.STALE_MEMBER_EPOCH),
        ("old", 4, Code.ILLEGAL_GENERATION),
        (None, 5, Code.UNKNOWN_MEMBER_ID),
        ("stranger", 5, Code.UNKNOWN_MEMBER_ID),
        ("stranger", -1, Code.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_reads_at_exactly_its_epoch_and_who_says_nothing_may_always(
    member_id: str | None, epoch: int, code: Code
) -> None:
    assert code_of(validate_offset_fetch, group(MEMBER, OLD), member_id, epoch) is code


def test_what_is_not_written_for_its_metadata_is_not_asked_an_epoch(
    world: World, member: Callable[..., Consumer], topic_id: UUID
) -> None:
    someone = member("a")
    someone.join("six")
    world.topics.grow("six", 7)
    someone.beat()
    assert someone.epoch == 3
    late = by(2, "a")

    def commit(metadata: str) -> list[Code]:
        offset = OffsetToCommit("six", 6, 1, metadata=metadata, topic_id=topic_id)
        return world.groups.offsets.commit_offsets(
            OffsetCommitCommand(GROUP, [offset]), late, unknown_group_code=Code.GROUP_ID_NOT_FOUND
        )

    assert commit("x" * 4_097) == [Code.OFFSET_METADATA_TOO_LARGE]
    assert code_of(commit, "x") is Code.STALE_MEMBER_EPOCH
