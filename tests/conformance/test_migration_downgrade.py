"""Test that a group is classic again when its last consumer leaves classic members behind."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from coordinator.errors import Code
from tests.conformance import configs
from tests.conformance.calls import eventually
from tests.conformance.consumers import AWAY, Consumer, describe
from tests.conformance.members import Member
from tests.conformance.migrants import Migrant, all_of, assigned, kind, settle
from tests.conformance.wire import Api, Client


def mixed(
    topic: str, classic: Callable[..., Migrant], consumer: Callable[..., Consumer], **fields: str
) -> tuple[Migrant, Consumer]:
    """Return a classic member and a consumer with three partitions each, in group epoch 2."""
    old = classic().stable_alone({topic: [0, 1, 2, 3, 4, 5]})
    new = consumer(**fields)
    new.join(topic)
    settle(old, new, rounds=3)
    assert (old.generation, new.epoch, len(old.has[topic])) == (2, 2, 3)
    return old, new


def test_the_last_consumer_that_leaves_leaves_a_classic_group_behind(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    old, new = mixed(six[0], classic, consumer)
    answer = new.leave()
    assert (answer.error_code, answer.member_epoch) == (Code.NONE, -1)
    assert kind(client, group) == "classic PreparingRebalance"
    (found,) = client.send(Api.DESCRIBE_GROUPS, 5, groups=[group]).groups
    (member,) = found.members
    assert (found.protocol_type, member.member_id) == ("consumer", old.member_id)
    assert assigned(member.member_assignment) == (1, old.has)
    assert describe(client, group).error_message == f"Group {group} is not a consumer group."
    assert old.heartbeat() == Code.REBALANCE_IN_PROGRESS
    answer = old.join(9)
    assert (answer.generation_id, answer.leader) == (3, old.member_id)
    assert [each.member_id for each in answer.members] == [old.member_id]
    assert old.sync({old.member_id: b"all"}).assignment == b"all"
    assert kind(client, group) == "classic Stable"
    assert new.send().error_code == Code.GROUP_ID_NOT_FOUND


def test_three_consumers_are_replaced_one_by_one(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    news = [consumer(), consumer(), consumer()]
    for each in news:
        each.join(six[0])
    settle(*news)
    olds: list[Migrant] = []
    for _ in range(2):
        assert news.pop().leave().error_code == Code.NONE
        olds.append(classic())
        olds[-1].ask_for_id(9)
        assert olds[-1].rejoin().error_code == Code.NONE
        olds[-1].take()
        settle(*olds, *news)
        assert all_of(six, *olds, *news) == [0, 1, 2, 3, 4, 5]
        assert kind(client, group) == "consumer Stable"
    epoch = news[0].epoch
    assert news.pop().leave().error_code == Code.NONE
    assert kind(client, group) == "classic PreparingRebalance"
    numbers = [each.post_join(9) for each in olds]
    answers = [each.joined(number) for each, number in zip(olds, numbers, strict=True)]
    assert {answer.generation_id for answer in answers} == {epoch + 1}
    assert {len(answer.members) for answer in answers} == {0, 2}


def test_a_consumer_that_falls_silent_leaves_a_classic_group_behind(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    soon = [
        ("consumer.heartbeat.interval.ms", configs.SET, "100"),
        ("consumer.session.timeout.ms", configs.SET, "500"),
    ]
    assert configs.alter(client, configs.GROUP, group, *soon) == configs.DONE
    old, _ = mixed(six[0], classic, consumer)
    expected = "classic PreparingRebalance"
    assert eventually(lambda: kind(client, group), expected) == expected
    assert old.join(9).generation_id == 3


def test_an_administrator_removes_the_last_consumer_by_its_instance_id(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    mixed(six[0], classic, consumer, instance_id="one")
    members = [{"member_id": "", "group_instance_id": "one"}]
    answer = client.send(Api.LEAVE_GROUP, 5, group_id=group, members=members)
    assert [each.error_code for each in answer.members] == [Code.NONE]
    assert kind(client, group) == "classic PreparingRebalance"


def test_a_static_consumer_that_is_away_is_a_member_still(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    old, new = mixed(six[0], classic, consumer, instance_id="one")
    assert new.leave(AWAY).error_code == Code.NONE
    assert kind(client, group).startswith("consumer ")
    assert old.heartbeat() == Code.NONE


def test_a_static_consumer_comes_back_as_a_classic_one_and_the_group_with_it(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    """Check that nothing that matters has changed, and everybody keeps its partitions at once."""
    old, new = mixed(six[0], classic, consumer, instance_id="one")
    back = classic("one")
    answer = back.rejoin()
    assert (answer.error_code, answer.generation_id) == (Code.NONE, 2)
    assert back.member_id not in ("", new.member_id)
    assert kind(client, group) == "classic Stable"
    assert back.take() == {six[0]: sorted(new.assigned[six[1]])}
    assert old.heartbeat() == back.heartbeat() == Code.NONE
    assert old.sync().error_code == Code.NONE


def test_one_that_comes_back_with_other_topics_has_to_join_the_classic_group_anew(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
    topic: str,
) -> None:
    old, _ = mixed(six[0], classic, consumer, instance_id="one")
    back = classic("one")
    back.topics = (six[0], topic)
    answer = back.rejoin()
    assert (answer.error_code, answer.generation_id) == (Code.NONE, 0)
    assert kind(client, group) == "classic PreparingRebalance"
    assert back.sync().error_code == Code.ILLEGAL_GENERATION
    assert old.heartbeat() == Code.REBALANCE_IN_PROGRESS
    joining = old.post_join(9)
    answer = back.joined(back.post_join(9))
    assert answer.generation_id == old.joined(joining).generation_id == 3


def test_of_several_consumers_the_last_one_that_is_replaced_takes_the_group_back(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    _, one = mixed(six[0], classic, consumer, instance_id="one")
    two = consumer(instance_id="two")
    two.join(six[0])
    assert classic("one").rejoin().error_code == Code.NONE
    assert kind(client, group).startswith("consumer ")
    assert classic("two").rejoin().error_code == Code.NONE
    assert kind(client, group).startswith("classic ")
    assert one.send().error_code == Code.GROUP_ID_NOT_FOUND


def test_an_empty_consumer_group_makes_way(
    client: Client,
    classic: Callable[..., Migrant],
    consumer: Callable[..., Consumer],
    group: str,
    six: tuple[str, UUID],
) -> None:
    new = consumer()
    new.join(six[0])
    new.leave()
    assert kind(client, group) == "consumer Empty"
    old = classic()
    old.ask_for_id(9)
    assert eventually(lambda: kind(client, group), "classic Empty") == "classic Empty"
    answer = old.rejoin()
    assert (answer.generation_id, answer.leader) == (1, old.member_id)


def test_to_an_empty_consumer_group_every_member_is_unknown(
    client: Client, consumer: Callable[..., Consumer], group: str, six: tuple[str, UUID]
) -> None:
    new = consumer()
    new.join(six[0])
    new.leave()
    stranger = Member(client, group, member_id="stranger", generation=3)
    assert stranger.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert stranger.sync().error_code == Code.UNKNOWN_MEMBER_ID
    assert stranger.leave() == Code.UNKNOWN_MEMBER_ID
    assert stranger.leave(5) == Code.UNKNOWN_MEMBER_ID
