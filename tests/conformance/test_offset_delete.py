"""Test that OffsetDelete deletes offsets of topics that a group doesn't read any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance.calls import (
    commit_offset,
    committed,
    create_topic,
    delete_offsets,
    fetch_offset,
    listed_groups,
    settled_offset,
)
from tests.conformance.commits import commit
from tests.conformance.consumers import Consumer, acknowledge_until, await_known
from tests.conformance.members import Member, alone, together
from tests.conformance.producers import Producer
from tests.conformance.wire import Client


def codes(answer: Any) -> dict[tuple[str, int], Code]:
    """Return the codes by topic and partition of a request that was accepted as a whole."""
    assert answer.error_code == Code.NONE, answer
    return {
        (topic.name, partition.partition_index): Code(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


def delete(
    client: Client, group: str, topics: Mapping[str, Iterable[int]]
) -> dict[tuple[str, int], Code]:
    return codes(delete_offsets(client, group, topics))


def test_a_deleted_offset_is_gone_and_the_others_stay(
    client: Client, group: str, topic: str, other_topic: str
) -> None:
    commit_offset(client, group, topic, 5)
    commit_offset(client, group, other_topic, 6)
    assert delete(client, group, {topic: [0]}) == {(topic, 0): Code.NONE}
    assert committed(client, group, topic) == -1
    assert committed(client, group, other_topic) == 6


def test_partitions_are_judged_one_by_one(
    client: Client, group: str, topic: str, other_topic: str, unique: Callable[[str], str]
) -> None:
    commit_offset(client, group, topic, 5)
    unknown = unique("unknown")
    assert delete(client, group, {topic: [0, 7], other_topic: [0], unknown: [0]}) == {
        (topic, 0): Code.NONE,
        (topic, 7): Code.UNKNOWN_TOPIC_OR_PARTITION,
        (other_topic, 0): Code.NONE,  # though it has no offset there
        (unknown, 0): Code.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_group_that_has_lost_its_last_offset_is_still_one(
    client: Client, group: str, topic: str
) -> None:
    commit_offset(client, group, topic, 5)
    delete(client, group, {topic: [0]})
    assert listed_groups(client)[group] == ("", "Empty")
    assert delete(client, group, {topic: [0]}) == {(topic, 0): Code.NONE}
    code = commit_offset(client, group, topic, 2, generation=3, member_id="someone")
    assert code == Code.UNKNOWN_MEMBER_ID


def test_a_group_that_does_not_exist_is_refused_with_69(
    client: Client, group: str, topic: str, unique: Callable[[str], str]
) -> None:
    for topics in ({topic: [0]}, {unique("unknown"): [0]}, {}):
        answer = delete_offsets(client, group, topics)
        assert (answer.error_code, answer.topics) == (Code.GROUP_ID_NOT_FOUND, ())


def test_an_empty_group_id_is_refused_with_24(client: Client, topic: str) -> None:
    answer = delete_offsets(client, "", {topic: [0]})
    assert (answer.error_code, answer.topics) == (Code.INVALID_GROUP_ID, ())


def test_a_request_for_nothing_is_answered_with_nothing(
    client: Client, group: str, topic: str
) -> None:
    commit_offset(client, group, topic, 5)
    assert delete(client, group, {}) == {}


@pytest.mark.parametrize("user_data", [b"", b"mine", None])
def test_a_topic_that_a_consumer_is_subscribed_to_is_refused_with_86(
    client: Client, group: str, topic: str, other_topic: str, user_data: bytes | None
) -> None:
    commit_offset(client, group, topic, 5)
    commit_offset(client, group, other_topic, 6)
    alone(Member(client, group, topics=(topic,), user_data=user_data))
    assert delete(client, group, {topic: [0], other_topic: [0]}) == {
        (topic, 0): Code.GROUP_SUBSCRIBED_TO_TOPIC,
        (other_topic, 0): Code.NONE,
    }
    assert committed(client, group, topic) == 5
    assert committed(client, group, other_topic) == -1


def test_what_any_member_is_subscribed_to_counts(
    connect: Callable[[], Client], client: Client, group: str, topic: str, other_topic: str
) -> None:
    first = alone(Member(connect(), group, topics=(topic,)))
    together(first, Member(connect(), group, topics=(other_topic,)))
    assert delete(client, group, {topic: [0], other_topic: [0]}) == {
        (topic, 0): Code.GROUP_SUBSCRIBED_TO_TOPIC,
        (other_topic, 0): Code.GROUP_SUBSCRIBED_TO_TOPIC,
    }


def test_a_subscription_that_can_not_be_read_may_be_to_anything(
    client: Client, group: str, topic: str
) -> None:
    member = alone(Member(client, group, metadata=b"?"))
    assert delete(client, group, {topic: [0]}) == {(topic, 0): Code.GROUP_SUBSCRIBED_TO_TOPIC}
    member.leave()
    assert delete(client, group, {topic: [0]}) == {(topic, 0): Code.NONE}


def test_a_subscription_counts_as_soon_as_its_generation_begins(
    connect: Callable[[], Client], client: Client, group: str, topic: str, other_topic: str
) -> None:
    first = Member(connect(), group, topics=(topic,))
    first.join()  # and doesn't sync
    assert delete(client, group, {topic: [0], other_topic: [0]}) == {
        (topic, 0): Code.GROUP_SUBSCRIBED_TO_TOPIC,
        (other_topic, 0): Code.NONE,
    }


def test_once_its_consumers_have_left_nothing_is_subscribed_to(
    client: Client, group: str, topic: str
) -> None:
    member = alone(Member(client, group, topics=(topic,)))
    commit_offset(client, group, topic, 5, generation=member.generation, member_id=member.member_id)
    assert delete(client, group, {topic: [0]}) == {(topic, 0): Code.GROUP_SUBSCRIBED_TO_TOPIC}
    member.leave()
    assert delete(client, group, {topic: [0]}) == {(topic, 0): Code.NONE}
    assert committed(client, group, topic) == -1


def test_a_group_of_others_than_consumers_is_refused_with_68_while_it_has_members(
    client: Client, group: str, topic: str
) -> None:
    commit_offset(client, group, topic, 5)
    member = alone(Member(client, group, protocol_type="connect", protocols=("eager",)))
    answer = delete_offsets(client, group, {topic: [0]})
    assert (answer.error_code, answer.topics) == (Code.NON_EMPTY_GROUP, ())
    member.leave()
    assert delete(client, group, {topic: [0]}) == {(topic, 0): Code.NONE}


def test_an_offset_that_a_transaction_holds_goes_too(
    client: Client, group: str, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    producer.stage_offset(group, topic, 10)
    assert delete(client, group, {topic: [0]}) == {(topic, 0): Code.NONE}
    assert fetch_offset(client, group, topic, stable=True).error_code == Code.NONE
    producer.commit()
    assert settled_offset(client, group, topic) == -1


def test_an_offset_that_is_staged_after_the_deletion_counts(
    client: Client, group: str, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    producer.stage_offset(group, topic, 10)
    delete(client, group, {topic: [0]})
    producer.stage_offset(group, topic, 11)
    producer.commit()
    assert settled_offset(client, group, topic) == 11


def test_several_partitions_of_a_topic_go_at_once(
    client: Client, group: str, unique: Callable[[str], str]
) -> None:
    wide = unique("wide")
    create_topic(client, wide, partitions=3)
    for partition in range(3):
        commit_offset(client, group, wide, 5, partition=partition)
    deleted = delete(client, group, {wide: [0, 2]})
    assert set(deleted.values()) == {Code.NONE}
    found = [
        fetch_offset(client, group, wide, partition=each).committed_offset for each in range(3)
    ]
    assert found == [-1, 5, -1]


# Consumer groups (KIP-848)


def test_what_members_of_a_consumer_group_are_subscribed_to_is_refused_with_86(
    connect: Callable[[], Client], client: Client, group: str, topic: str, other_topic: str
) -> None:
    await_known(client, group, topic)
    member = Consumer(connect(), group)
    member.join(topic)
    who = {"member_id": member.member_id, "generation": member.epoch}
    for name in (topic, other_topic):
        assert commit(client, 9, group, {name: [0]}, **who) == {(name, 0): Code.NONE}
    both = {topic: [0], other_topic: [0]}
    assert delete(client, group, both) == {
        (topic, 0): Code.GROUP_SUBSCRIBED_TO_TOPIC,
        (other_topic, 0): Code.NONE,
    }
    assert (committed(client, group, topic), committed(client, group, other_topic)) == (5, -1)
    member.leave()
    assert set(delete(client, group, both).values()) == {Code.NONE}
    assert committed(client, group, topic) == -1


def test_what_a_regular_expression_stands_for_is_refused_with_86(
    connect: Callable[[], Client], client: Client, group: str, topic: str, other_topic: str
) -> None:
    await_known(client, group, topic)
    member = Consumer(connect(), group)
    member.join(subscribed_topic_names=None, subscribed_topic_regex=f"{topic[:-1]}[{topic[-1]}]")
    acknowledge_until(lambda: bool(member.assigned), member)
    assert delete(client, group, {topic: [0], other_topic: [0]}) == {
        (topic, 0): Code.GROUP_SUBSCRIBED_TO_TOPIC,
        (other_topic, 0): Code.NONE,
    }
