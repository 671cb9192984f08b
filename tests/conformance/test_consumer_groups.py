"""Test that the broker assigns partitions to members of a consumer group (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from coordinator.errors import Code
from tests.conformance import calls, configs
from tests.conformance.consumers import (
    AWAY,
    LEAVE,
    Consumer,
    acknowledge_until,
    await_known,
    describe,
    encode_partitions,
)
from tests.conformance.wire import Api, Client

# Joining


def test_the_first_member_gets_epoch_2_and_every_partition(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    someone = consumer()
    answer = someone.join(topic)
    assert answer.member_id == someone.member_id
    assert (answer.member_epoch, answer.heartbeat_interval.total_seconds()) == (2, 5)
    assert someone.assigned == {topic_id: {0, 1}}


def test_a_second_member_waits_until_the_first_has_revoked(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    first, second = consumer(), consumer()
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
    consumer: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    first, second = consumer(), consumer()
    first.join(topic)
    second.join(topic)
    acknowledge_until(lambda: len(second.assigned) == 1, first, second)
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


# Lost responses


def test_a_member_may_be_one_epoch_behind_with_no_more_than_it_is_to_have(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    first, second = consumer(), consumer()
    first.join(topic)
    second.join(topic)
    first.beat()
    kept = first.assigned
    assert first.acknowledge().member_epoch == 3
    first.epoch = 2  # that response was lost
    assert first.send().error_code == Code.FENCED_MEMBER_EPOCH, "it must say what it has"
    too_much = {topic_id: {0, 1}}
    answer = first.send(topic_partitions=encode_partitions(too_much))
    assert answer.error_code == Code.FENCED_MEMBER_EPOCH
    assert first.beat(topic_partitions=encode_partitions(kept)).member_epoch == 3


def test_an_epoch_that_is_not_the_member_s_is_fenced(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    someone = consumer()
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
    consumer: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, topic_id = pair
    someone = consumer()
    someone.join(topic)
    answer = someone.join(topic)
    assert (answer.member_epoch, someone.assigned) == (2, {topic_id: {0, 1}})


def test_a_full_request_is_answered_with_the_assignment(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID]
) -> None:
    topic, _topic_id = pair
    someone = consumer()
    someone.join(topic)
    assert someone.acknowledge().assignment is None
    answer = someone.acknowledge(subscribed_topic_names=[topic], rebalance_timeout=1_000)
    assert answer.assignment is not None


# Subscriptions


def test_a_topic_that_a_member_unsubscribes_from_is_revoked(
    consumer: Callable[..., Consumer],
    pair: tuple[str, UUID],
    other_topic: str,
    client: Client,
    group: str,
) -> None:
    topic, topic_id = pair
    other_id = calls.topic_id(client, other_topic)
    await_known(client, group, other_topic)
    someone = consumer()
    someone.join(topic, other_topic)
    assert someone.assigned == {topic_id: {0, 1}, other_id: {0}}
    answer = someone.acknowledge(subscribed_topic_names=[topic])
    assert (answer.member_epoch, someone.assigned) == (2, {topic_id: {0, 1}})
    answer = someone.acknowledge()
    assert (answer.member_epoch, answer.assignment) == (3, None)


def test_a_topic_that_a_member_subscribes_to_is_added(
    consumer: Callable[..., Consumer],
    pair: tuple[str, UUID],
    other_topic: str,
    client: Client,
    group: str,
) -> None:
    topic, topic_id = pair
    other_id = calls.topic_id(client, other_topic)
    await_known(client, group, other_topic)
    someone = consumer()
    someone.join(topic)
    answer = someone.acknowledge(subscribed_topic_names=[topic, other_topic])
    assert (answer.member_epoch, someone.assigned) == (3, {topic_id: {0, 1}, other_id: {0}})


def test_a_member_without_topics_is_one_all_the_same(
    consumer: Callable[..., Consumer], client: Client, group: str
) -> None:
    someone = consumer()
    assert someone.join().member_epoch == 1, "nothing has changed for the group"
    assert someone.assigned == {}
    assert describe(client, group).group_state == "Stable"


def test_partitions_that_a_topic_gets_are_assigned(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client
) -> None:
    topic, topic_id = pair
    someone = consumer()
    someone.join(topic)
    topics = [{"name": topic, "count": 4, "assignments": None}]
    client.send(Api.CREATE_PARTITIONS, 2, topics=topics, timeout=10_000, validate_only=False)
    acknowledge_until(lambda: someone.partitions(topic_id) == [0, 1, 2, 3], someone)
    assert someone.epoch == 3


def test_a_topic_that_is_deleted_is_taken_away_and_one_that_is_made_is_given(
    consumer: Callable[..., Consumer],
    pair: tuple[str, UUID],
    client: Client,
    unique: Callable[[str], str],
) -> None:
    topic, topic_id = pair
    later = unique("later")
    someone = consumer()
    someone.join(topic, later)
    assert someone.assigned == {topic_id: {0, 1}}
    calls.create_topic(client, later)
    later_id = calls.topic_id(client, later)
    acknowledge_until(lambda: someone.assigned == {topic_id: {0, 1}, later_id: {0}}, someone)
    client.send(Api.DELETE_TOPICS, 4, topic_names=[topic], timeout=10_000)
    acknowledge_until(lambda: someone.assigned == {later_id: {0}}, someone)
    assert someone.acknowledge().member_epoch == 4


def test_who_subscribes_by_regular_expression_gets_its_topics_a_moment_later(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, topic_id = pair
    someone = consumer()
    answer = someone.join(subscribed_topic_names=None, subscribed_topic_regex=f"{topic}.*")
    assert someone.assigned == {}
    acknowledge_until(lambda: someone.assigned == {topic_id: {0, 1}}, someone)
    [described] = describe(client, group).members
    assert described.subscribed_topic_regex == f"{topic}.*"
    assert described.subscribed_topic_names == ()
    second = consumer()
    answer = second.join(subscribed_topic_names=None, subscribed_topic_regex=f"{topic}.*")
    assert answer.member_epoch == someone.epoch + 1, "the expression is resolved already"
    acknowledge_until(lambda: len(second.assigned) == 1, someone, second)
    answer = someone.acknowledge(subscribed_topic_regex="")
    acknowledge_until(lambda: second.assigned == {topic_id: {0, 1}}, someone, second)
    assert someone.assigned == {}


def test_an_expression_matches_names_as_a_whole(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, topic_id = pair
    part, whole = consumer(), consumer()
    part.group = f"{group}-other"  # one group resolves no more often than every 10 s
    part.join(subscribed_topic_names=None, subscribed_topic_regex=topic[1:])
    whole.join(subscribed_topic_names=[], subscribed_topic_regex=f".{topic[1:]}")
    acknowledge_until(lambda: whole.assigned == {topic_id: {0, 1}}, part, whole)
    for _ in range(3):
        part.beat()
    assert part.assigned == {}


# Assignors


def test_the_assignor_that_most_members_ask_for_is_taken(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, _ = pair
    first, second, third = consumer(), consumer(), consumer()
    first.join(topic, server_assignor="range")
    assert describe(client, group).assignor_name == "range"
    second.join(topic, server_assignor="uniform")
    assert describe(client, group).assignor_name == "uniform", "on a tie"
    third.join(topic, server_assignor="range")
    assert describe(client, group).assignor_name == "range"


# Settings of a group


def test_a_group_s_own_settings_hold_at_once(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    someone = consumer()
    assert someone.join(pair[0]).heartbeat_interval.total_seconds() == 5
    configs.alter(client, configs.GROUP, group, ("consumer.heartbeat.interval.ms", 0, "6000"))

    def interval_s() -> float:
        seconds: float = someone.beat().heartbeat_interval.total_seconds()
        return seconds

    assert calls.eventually(interval_s, 6) == 6


def test_a_member_that_falls_silent_loses_its_partitions(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, topic_id = pair
    for name, value in (("heartbeat.interval.ms", "200"), ("session.timeout.ms", "600")):
        configs.alter(client, configs.GROUP, group, (f"consumer.{name}", 0, value))
    key = "consumer.session.timeout.ms"
    calls.eventually(lambda: configs.values(client, configs.GROUP, group)[key][0], "600")
    silent, other = consumer(), consumer()
    silent.join(topic)
    other.join(topic)
    acknowledge_until(lambda: other.assigned == {topic_id: {0, 1}}, other)
    assert silent.send().error_code == Code.UNKNOWN_MEMBER_ID


# Static members


def test_a_static_member_gets_its_partitions_back_without_a_rebalance(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, _ = pair
    first, second = consumer(instance_id="one"), consumer(instance_id="two")
    first.join(topic)
    second.join(topic)
    acknowledge_until(lambda: len(second.assigned) == 1, first, second)
    mine = first.assigned
    first.leave(AWAY)
    assert second.beat().assignment is None
    back = consumer(instance_id="one")
    answer = back.join(topic)
    assert (answer.member_epoch, back.assigned) == (3, mine)
    found = describe(client, group)
    assert (found.group_state, found.group_epoch, len(found.members)) == ("Stable", 3, 2)
