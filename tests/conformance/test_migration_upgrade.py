"""Test that a consumer that joins upgrades a classic group to KIP-848 while it works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.conformance.calls import settled
from tests.conformance.consumers import Consumer, describe
from tests.conformance.members import Member, see_rebalance
from tests.conformance.migrants import (
    Migrant,
    all_of,
    assigned,
    assignment,
    join_together,
    kind,
    settle,
)
from tests.conformance.wire import Api, Client, plain

# The conversion


def test_a_consumer_that_joins_a_classic_group_makes_a_consumer_group_of_it(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    old = classic().stable_alone({six[0]: [0, 1, 2, 3, 4, 5]})
    assert kind(client, group) == "classic Stable"
    new = consumer()
    answer = new.join(six[0])
    assert (answer.member_epoch, new.assigned) == (old.generation + 1, {})
    assert kind(client, group) == "consumer Reconciling"
    found = describe(client, group)
    assert (found.group_epoch, found.assignment_epoch) == (2, 2)
    told = {each.member_id: each for each in found.members}
    assert {who: each.member_type for who, each in told.items()} == {
        old.member_id: 0,
        new.member_id: 1,
    }
    assert told[old.member_id].member_epoch == 1
    assert told[old.member_id].client_id == "conformance"
    (named,) = told[old.member_id].assignment.topic_partitions
    assert sorted(named.partitions) == [0, 1, 2, 3, 4, 5]
    (dead,) = client.send(Api.DESCRIBE_GROUPS, 6, groups=[group]).groups
    assert (dead.error_code, dead.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        f"Group {group} is not a classic group.",
    )


def test_the_classic_member_gives_up_its_part_in_a_round_of_its_own(
    classic: Callable[..., Migrant], consumer: Callable[..., Consumer], six: tuple[str, UUID]
) -> None:
    old = classic().stable_alone({six[0]: [0, 1, 2, 3, 4, 5]})
    new = consumer()
    new.join(six[0])
    assert old.heartbeat() == Code.REBALANCE_IN_PROGRESS
    answer = old.rejoin()
    assert plain(answer) == {
        "error_code": Code.NONE,
        "generation_id": 1,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "leader": "",
        "skip_assignment": False,
        "member_id": old.member_id,
        "members": [],
    }
    kept = old.take()[six[0]]
    assert len(kept) == 3
    new.acknowledge()
    assert new.assigned == {}, "the other has not said yet that it gave them up"
    assert old.heartbeat() == Code.REBALANCE_IN_PROGRESS
    assert old.rejoin().generation_id == 2
    assert old.take()[six[0]] == kept
    assert old.heartbeat() == Code.NONE
    new.acknowledge()
    assert all_of(six, old, new) == [0, 1, 2, 3, 4, 5]


def test_a_member_that_gives_up_everything_before_it_joins_needs_one_round_only(
    classic: Callable[..., Migrant], consumer: Callable[..., Consumer], six: tuple[str, UUID]
) -> None:
    """Check a member of an eager assignor: range, round robin or sticky."""
    old = classic().stable_alone({six[0]: [0, 1, 2, 3, 4, 5]})
    new = consumer()
    new.join(six[0])
    old.has = {}
    assert old.rejoin().generation_id == 2
    assert len(old.take()[six[0]]) == 3
    new.acknowledge()
    assert all_of(six, old, new) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_assignment_is_written_in_the_version_of_the_member_s_metadata(
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    six: tuple[str, UUID],
    version: int,
) -> None:
    old = classic(version=version).stable_alone({})
    consumer().join(six[0])
    old.rejoin()
    answer = old.sync()
    assert assigned(answer.assignment)[0] == version


def test_three_members_go_over_one_by_one(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    olds = [classic(), classic(), classic()]
    join_together(six[0], *olds)
    generation = olds[0].generation
    news: list[Consumer] = []
    for left in (2, 1, 0):
        assert olds.pop().leave() == Code.NONE
        news.append(consumer())
        news[-1].join(six[0])
        settle(*olds, *news)
        assert all_of(six, *olds, *news) == [0, 1, 2, 3, 4, 5]
        found = describe(client, group)
        assert sorted(each.member_type for each in found.members) == [0] * left + [1] * (3 - left)
        assert (found.group_state, found.group_epoch > generation) == ("Stable", True)
        generation = found.group_epoch
    assert kind(client, group) == "consumer Stable"


def test_who_waits_for_a_round_is_told_27_and_joins_the_consumer_group(
    classic: Callable[..., Migrant], consumer: Callable[..., Consumer], six: tuple[str, UUID]
) -> None:
    first, second = classic().stable_alone({six[0]: [0, 1]}), classic()
    second.ask_for_id()
    joining = second.post_join(9)
    see_rebalance(first)
    consumer().join(six[0])
    refused = second.client.receive(joining)
    assert (refused.error_code, refused.member_id) == (
        Code.REBALANCE_IN_PROGRESS,
        second.member_id,
    )
    assert (refused.generation_id, refused.members) == (-1, ())
    assert first.heartbeat() == Code.REBALANCE_IN_PROGRESS
    assert first.rejoin().error_code == second.rejoin().error_code == Code.NONE


def test_who_waits_for_an_assignment_is_told_27(
    classic: Callable[..., Migrant], consumer: Callable[..., Consumer], six: tuple[str, UUID]
) -> None:
    first, second = classic().stable_alone({}), classic()
    second.ask_for_id()
    joining = second.post_join(9)
    see_rebalance(first)
    first.join(9)
    second.joined(joining)
    waiting = second.post_sync()
    consumer().join(six[0])
    assert second.client.receive(waiting).error_code == Code.REBALANCE_IN_PROGRESS
    assert second.rejoin().error_code == Code.NONE


def test_an_id_that_has_only_been_asked_for_may_join_the_consumer_group_all_the_same(
    classic: Callable[..., Migrant], consumer: Callable[..., Consumer], six: tuple[str, UUID]
) -> None:
    classic().stable_alone({})
    late = classic()
    late.ask_for_id()
    consumer().join(six[0])
    answer = late.rejoin()
    assert (answer.error_code, answer.member_id) == (Code.NONE, late.member_id)


def test_an_empty_classic_group_makes_way(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    old = classic().stable_alone({})
    old.leave()
    assert kind(client, group) == "classic Empty"
    new = consumer()
    assert new.join(six[0]).member_epoch == 2
    assert kind(client, group) == "consumer Stable"


# What is not converted


def test_a_group_that_is_not_of_consumers_is_not_converted(
    client: Client, connect: Callable[[], Client], group: str, six: tuple[str, UUID]
) -> None:
    worker = Member(connect(), group, protocol_type="connect")
    worker.join()
    refused = _join(Consumer(client, group), six[0])
    assert (refused.error_code, refused.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        (
            f"Cannot upgrade classic group {group} to consumer group because the group does not "
            "use the consumer embedded protocol."
        ),
    )
    assert worker.sync({worker.member_id: b"x"}).assignment == b"x"


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff\x00\x00"])
def test_a_group_whose_assignment_nobody_can_read_is_not_converted(
    client: Client, classic: Callable[..., Migrant], group: str, six: tuple[str, UUID], data: bytes
) -> None:
    old = classic()
    old.join(9)
    old.sync({old.member_id: data})
    refused = _join(Consumer(client, group), six[0])
    assert (refused.error_code, refused.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        (
            f"Cannot upgrade classic group {group} to consumer group because the embedded consumer "
            "protocol is malformed."
        ),
    )
    assert old.heartbeat() == Code.NONE


def test_a_group_with_an_assignor_that_keeps_user_data_is_not_converted(
    client: Client, classic: Callable[..., Migrant], group: str, six: tuple[str, UUID]
) -> None:
    old = classic()
    old.join(9)
    old.sync({old.member_id: assignment({six[0]: [0]}, user_data=b"mine")})
    refused = _join(Consumer(client, group), six[0])
    assert (refused.error_code, refused.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        (
            f"Cannot upgrade classic group {group} to consumer group because an unsupported custom "
            "assignor is in use. Please refer to the documentation or switch to a default assignor "
            "before re-attempting the upgrade."
        ),
    )
    assert old.heartbeat() == Code.NONE


def test_a_group_whose_leader_gave_a_partition_to_two_members_is_not_converted(
    client: Client, classic: Callable[..., Migrant], group: str, six: tuple[str, UUID]
) -> None:
    first, second = classic(), classic()
    join_together(six[0], first, second, parts=[[0, 1], [1]])
    refused = _join(Consumer(client, group), six[0])
    assert refused.error_code == Code.UNKNOWN_SERVER_ERROR
    assert kind(client, group) == "classic Stable"
    assert first.heartbeat() == second.heartbeat() == Code.NONE


def test_a_consumer_that_is_no_newcomer_converts_nothing(
    client: Client, classic: Callable[..., Migrant], group: str
) -> None:
    classic().stable_alone({})
    refused = Consumer(client, group, epoch=1).send()
    assert (refused.error_code, refused.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        f"Group {group} is not a consumer group.",
    )
    assert kind(client, group) == "classic Stable"


def _join(member: Consumer, topic: str) -> Any:
    return member.send(
        member_epoch=0,
        rebalance_timeout=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=(),
    )


# Static members


def test_a_static_member_comes_back_with_the_other_protocol_and_takes_its_place(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    one = classic("one").stable_alone({six[0]: [0, 1, 2, 3, 4, 5]})
    back = consumer(instance_id="one")
    answer = back.join(six[0])
    assert (answer.member_epoch, back.assigned) == (1, {six[1]: {0, 1, 2, 3, 4, 5}})
    assert one.heartbeat() == Code.FENCED_INSTANCE_ID
    assert one.rejoin().error_code == Code.FENCED_INSTANCE_ID
    (member,) = describe(client, group).members
    assert (member.instance_id, member.member_type) == ("one", 1)


def test_a_classic_static_member_of_a_consumer_group_comes_back_under_a_new_id(
    classic: Callable[..., Migrant], consumer: Callable[..., Consumer], six: tuple[str, UUID]
) -> None:
    one = classic("one").stable_alone({six[0]: [0, 1, 2, 3, 4, 5]})
    other = consumer()
    other.join(six[0])
    settle(one, other)
    back = classic("one")
    answer = back.rejoin()
    assert (answer.error_code, answer.generation_id) == (Code.NONE, 2)
    assert back.member_id != one.member_id
    assert back.take() == one.has
    assert one.sync().error_code == Code.FENCED_INSTANCE_ID
    assert settled(back.heartbeat) == other.acknowledge().error_code == Code.NONE
