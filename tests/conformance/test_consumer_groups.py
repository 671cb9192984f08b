"""Consumer groups (KIP-848): members say what they want and have, the broker says what to have."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.conformance import calls
from tests.conformance.consumers import LEAVE, Consumer, describe, given, see_topic, until
from tests.conformance.wire import Client


@pytest.fixture
def member(connect: Callable[[], Client], group: str) -> Callable[..., Consumer]:
    """Members of one group, on one connection."""
    client = connect()
    return lambda **fields: Consumer(client, group, **fields)


@pytest.fixture
def pair(client: Client, group: str, unique: Callable[[str], str]) -> tuple[str, UUID]:
    """A topic of two partitions, and its id."""
    name = unique("pair")
    calls.create_topic(client, name, partitions=2)
    see_topic(client, group, name)
    return name, calls.topic_id(client, name)


# Joining


def test_the_first_member_gets_epoch_2_and_every_partition(
    member: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    someone = member()
    answer = someone.join(topic)
    assert answer.member_id == someone.member_id
    assert (answer.member_epoch, answer.heartbeat_interval.total_seconds()) == (2, 5)
    assert someone.assigned == {topic_id: {0, 1}}


def test_a_second_member_waits_until_the_first_has_revoked(
    member: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    first, second = member(), member()
    first.join(topic)
    first.acknowledge()
    answer = second.join(topic)
    assert (answer.member_epoch, second.assigned) == (3, {})
    answer = first.beat()
    assert (answer.member_epoch, len(first.assigned[topic_id])) == (2, 1), "revoke before epoch 3"
    kept = set(first.assigned[topic_id])
    assert second.beat().assignment is None, "nothing yet"
    assert first.beat().assignment is None, "told already"
    answer = first.acknowledge()
    assert (answer.member_epoch, answer.assignment) == (3, None)
    second.beat()
    assert second.assigned == {topic_id: {0, 1} - kept}


def test_a_member_that_leaves_frees_its_partitions(
    member: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    first, second = member(), member()
    first.join(topic)
    second.join(topic)
    until(lambda: len(second.assigned) == 1, first, second)
    answer = first.leave()
    assert (answer.error_code, answer.member_epoch, answer.member_id, answer.assignment) == (
        Code.NONE,
        LEAVE,
        first.member_id,
        None,
    )
    assert second.beat().member_epoch == 4
    assert second.assigned == {topic_id: {0, 1}}
    assert first.send().error_code == Code.UNKNOWN_MEMBER_ID


# Lost answers


def test_a_member_may_be_one_epoch_behind_with_no_more_than_it_is_to_have(
    member: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    first, second = member(), member()
    first.join(topic)
    second.join(topic)
    first.beat()
    kept = first.assigned
    assert first.acknowledge().member_epoch == 3
    first.epoch = 2  # it never got that answer
    assert first.send().error_code == Code.FENCED_MEMBER_EPOCH, "it must say what it has"
    too_much = {topic_id: {0, 1}}
    answer = first.send(topic_partitions=given(too_much))
    assert answer.error_code == Code.FENCED_MEMBER_EPOCH
    assert first.beat(topic_partitions=given(kept)).member_epoch == 3


def test_an_epoch_that_is_not_the_member_s_is_fenced(
    member: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    someone = member()
    someone.join(pair[0])
    answer = someone.send(member_epoch=3)
    assert (answer.error_code, answer.error_message) == (
        Code.FENCED_MEMBER_EPOCH,
        (
            "The consumer group member has a greater member epoch (3) than the one known by the "
            "group coordinator (2). The member must abandon all its partitions and rejoin."
        ),
    )
    answer = someone.send(member_epoch=1)
    assert (answer.error_code, answer.error_message) == (
        Code.FENCED_MEMBER_EPOCH,
        (
            "The consumer group member has a smaller member epoch (1) than the one known by the "
            "group coordinator (2). The member must abandon all its partitions and rejoin."
        ),
    )


def test_a_member_that_joins_again_gets_what_it_had(
    member: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    someone = member()
    someone.join(topic)
    answer = someone.join(topic)
    assert (answer.member_epoch, someone.assigned) == (2, {topic_id: {0, 1}})


def test_a_full_request_is_answered_with_the_assignment(
    member: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, _topic_id = pair
    someone = member()
    someone.join(topic)
    assert someone.acknowledge().assignment is None
    answer = someone.acknowledge(subscribed_topic_names=[topic], rebalance_timeout=1_000)
    assert answer.assignment is not None


# Describe


def test_a_group_is_described_in_each_of_its_states(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, _ = pair
    found = describe(client, group)
    assert (found.error_code, found.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        f"Group {group} not found.",
    )
    first, second = member(), member()
    first.join(topic)
    assert describe(client, group).group_state == "Stable"
    second.join(topic)
    assert describe(client, group).group_state == "Reconciling"
    until(lambda: len(second.assigned) == 1, first, second)
    found = describe(client, group)
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 3, 3)
    assert found.assignor_name == "uniform"
    first.leave()
    found = describe(client, group)
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Assigning", 4, 3)
    second.leave()
    found = describe(client, group)
    assert (found.group_state, found.group_epoch, found.members) == ("Empty", 5, ())
