"""Consumer groups (KIP-848): members say what they want and have, the broker says what to have."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.conformance import calls, configs
from tests.conformance.consumers import AWAY, LEAVE, Consumer, describe, given, see_topic, until
from tests.conformance.wire import Api, Client


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


# Subscriptions


def test_a_topic_that_a_member_unsubscribes_from_is_revoked(
    member: Callable[..., Consumer], pair: tuple[str, UUID], other_topic: str, client: Client
) -> None:
    topic, topic_id = pair
    other_id = calls.topic_id(client, other_topic)
    see_topic(client, member().group, other_topic)
    someone = member()
    someone.join(topic, other_topic)
    assert someone.assigned == {topic_id: {0, 1}, other_id: {0}}
    answer = someone.acknowledge(subscribed_topic_names=[topic])
    assert (answer.member_epoch, someone.assigned) == (2, {topic_id: {0, 1}})
    answer = someone.acknowledge()
    assert (answer.member_epoch, answer.assignment) == (3, None)


def test_a_topic_that_a_member_subscribes_to_is_added(
    member: Callable[..., Consumer], pair: tuple[str, UUID], other_topic: str, client: Client
) -> None:
    topic, topic_id = pair
    other_id = calls.topic_id(client, other_topic)
    see_topic(client, member().group, other_topic)
    someone = member()
    someone.join(topic)
    answer = someone.acknowledge(subscribed_topic_names=[topic, other_topic])
    assert (answer.member_epoch, someone.assigned) == (3, {topic_id: {0, 1}, other_id: {0}})


def test_a_member_without_topics_is_one_all_the_same(
    member: Callable[..., Consumer], client: Client, group: str
) -> None:
    someone = member()
    assert someone.join().member_epoch == 1, "nothing has changed for the group"
    assert someone.assigned == {}
    assert describe(client, group).group_state == "Stable"


def test_partitions_that_a_topic_gets_are_assigned(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client
) -> None:
    topic, topic_id = pair
    someone = member()
    someone.join(topic)
    topics = [{"name": topic, "count": 4, "assignments": None}]
    client.send(Api.CREATE_PARTITIONS, 2, topics=topics, timeout=10_000, validate_only=False)
    until(lambda: someone.partitions(topic_id) == [0, 1, 2, 3], someone)
    assert someone.epoch == 3


def test_a_topic_that_is_deleted_is_taken_away_and_one_that_is_made_is_given(
    member: Callable[..., Consumer],
    pair: tuple[str, UUID],
    client: Client,
    unique: Callable[[str], str],
) -> None:
    topic, topic_id = pair
    later = unique("later")
    someone = member()
    someone.join(topic, later)
    assert someone.assigned == {topic_id: {0, 1}}
    calls.create_topic(client, later)
    later_id = calls.topic_id(client, later)
    until(lambda: someone.assigned == {topic_id: {0, 1}, later_id: {0}}, someone)
    client.send(Api.DELETE_TOPICS, 4, topic_names=[topic], timeout=10_000)
    until(lambda: someone.assigned == {later_id: {0}}, someone)
    assert someone.acknowledge().member_epoch == 4


def test_who_subscribes_by_regular_expression_gets_its_topics_a_moment_later(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, topic_id = pair
    someone = member()
    answer = someone.join(subscribed_topic_names=None, subscribed_topic_regex=f"{topic}.*")
    assert someone.assigned == {}
    until(lambda: someone.assigned == {topic_id: {0, 1}}, someone)
    [described] = describe(client, group).members
    assert described.subscribed_topic_regex == f"{topic}.*"
    assert described.subscribed_topic_names == ()
    second = member()
    answer = second.join(subscribed_topic_names=None, subscribed_topic_regex=f"{topic}.*")
    assert answer.member_epoch == someone.epoch + 1, "the expression is resolved already"
    until(lambda: len(second.assigned) == 1, someone, second)
    answer = someone.acknowledge(subscribed_topic_regex="")
    until(lambda: second.assigned == {topic_id: {0, 1}}, someone, second)
    assert someone.assigned == {}


def test_an_expression_matches_names_as_a_whole(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, topic_id = pair
    part, whole = member(), member()
    part.group = f"{group}-other"  # one group resolves no more often than every 10 s
    part.join(subscribed_topic_names=None, subscribed_topic_regex=topic[1:])
    whole.join(subscribed_topic_names=[], subscribed_topic_regex=f".{topic[1:]}")
    until(lambda: whole.assigned == {topic_id: {0, 1}}, part, whole)
    for _ in range(3):
        part.beat()
    assert part.assigned == {}


# Assignors


def test_the_assignor_that_most_members_ask_for_is_taken(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, _ = pair
    first, second, third = member(), member(), member()
    first.join(topic, server_assignor="range")
    assert describe(client, group).assignor_name == "range"
    second.join(topic, server_assignor="uniform")
    assert describe(client, group).assignor_name == "uniform", "on a tie"
    third.join(topic, server_assignor="range")
    assert describe(client, group).assignor_name == "range"


# Settings of a group


def test_a_group_s_own_settings_hold_at_once(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    someone = member()
    assert someone.join(pair[0]).heartbeat_interval.total_seconds() == 5
    configs.alter(client, configs.GROUP, group, ("consumer.heartbeat.interval.ms", 0, "6000"))

    def interval_s() -> float:
        seconds: float = someone.beat().heartbeat_interval.total_seconds()
        return seconds

    assert calls.eventually(interval_s, 6) == 6


def test_a_member_that_falls_silent_loses_its_partitions(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, topic_id = pair
    for name, value in (("heartbeat.interval.ms", "200"), ("session.timeout.ms", "600")):
        configs.alter(client, configs.GROUP, group, (f"consumer.{name}", 0, value))
    key = "consumer.session.timeout.ms"
    calls.eventually(lambda: configs.values(client, configs.GROUP, group)[key][0], "600")
    silent, other = member(), member()
    silent.join(topic)
    other.join(topic)
    until(lambda: other.assigned == {topic_id: {0, 1}}, other)
    assert silent.send().error_code == Code.UNKNOWN_MEMBER_ID


# Static members


def test_a_static_member_gets_its_partitions_back_without_a_rebalance(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, _ = pair
    first, second = member(instance_id="one"), member(instance_id="two")
    first.join(topic)
    second.join(topic)
    until(lambda: len(second.assigned) == 1, first, second)
    mine = first.assigned
    first.leave(AWAY)
    assert second.beat().assignment is None
    back = member(instance_id="one")
    answer = back.join(topic)
    assert (answer.member_epoch, back.assigned) == (3, mine)
    found = describe(client, group)
    assert (found.group_state, found.group_epoch, len(found.members)) == ("Stable", 3, 2)


# Offsets


def test_a_member_commits_with_its_epoch_or_an_older_one_at_which_it_had_the_partition(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client
) -> None:
    topic, topic_id = pair
    first, second = member(), member()
    first.join(topic)
    second.join(topic)
    until(lambda: len(second.assigned) == 1, first, second)
    [kept], [lost] = first.partitions(topic_id), second.partitions(topic_id)

    def commit(who: Consumer, epoch: int, partition: int, version: int = 9) -> Code:
        asked = {"partition_index": partition, "committed_offset": 1, "committed_metadata": ""}
        response = client.send(
            Api.OFFSET_COMMIT,
            version,
            group_id=who.group,
            generation_id_or_member_epoch=epoch,
            member_id=who.member_id,
            topics=[{"name": topic, "partitions": [asked]}],
        )
        return Code(response.topics[0].partitions[0].error_code)

    assert first.epoch == second.epoch == 3
    assert commit(first, 3, kept) == Code.NONE
    assert commit(first, 3, lost) == Code.NONE, "whose it is, isn't looked at"
    assert commit(first, 2, kept) == Code.NONE, "it had that one at epoch 2"
    assert commit(first, 2, lost) == Code.STALE_MEMBER_EPOCH
    assert commit(second, 2, lost) == Code.STALE_MEMBER_EPOCH
    assert commit(first, 4, kept) == Code.STALE_MEMBER_EPOCH
    assert commit(first, 3, kept, version=8) == Code.UNSUPPORTED_VERSION
    assert commit(first, -1, kept) == Code.STALE_MEMBER_EPOCH
    first.member_id = "stranger"
    assert commit(first, 3, kept) == Code.UNKNOWN_MEMBER_ID


def test_a_member_reads_offsets_with_its_epoch_and_anyone_who_says_nothing_of_itself(
    member: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    someone = member()
    someone.join(pair[0])

    def fetch(member_id: str | None, epoch: int) -> Code:
        asked = {"group_id": group, "member_id": member_id, "member_epoch": epoch, "topics": None}
        response = client.send(Api.OFFSET_FETCH, 9, groups=[asked], require_stable=False)
        return Code(response.groups[0].error_code)

    assert fetch(None, -1) == Code.NONE
    assert fetch(someone.member_id, 2) == Code.NONE
    assert fetch(someone.member_id, 1) == Code.STALE_MEMBER_EPOCH
    assert fetch(someone.member_id, -1) == Code.STALE_MEMBER_EPOCH
    assert fetch("stranger", 2) == Code.UNKNOWN_MEMBER_ID


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
