"""Test that expired offsets are deleted, and with the last one an empty group.

On a broker of its own that looks every 100 ms. Nobody wants to wait for
`offsets.retention.minutes`, of which one is the least: these offsets expire by their clients' own
wish, the retention time of OffsetCommit v2 to v4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from coordinator.errors import Code
from tests import brokers
from tests.brokers import Broker
from tests.conformance.calls import create_topic, eventually, fetch_offsets, listed_groups
from tests.conformance.commits import commit
from tests.conformance.members import Member, alone
from tests.conformance.producers import Producer
from tests.conformance.wire import Api, Client

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def looking(broker: Broker) -> Iterator[Broker]:
    """Start a broker of the tested kind that checks for expired offsets all the time."""
    settings = {**brokers.SETTINGS, "offsets.retention.check.interval.ms": "100"}
    made = brokers.make(broker.kind, settings)
    try:
        made.start()
        with Client(made.bootstrap_servers) as client:
            for kind in (0, 1):
                client.send(Api.FIND_COORDINATOR, 2, key="anything", key_type=kind)
        yield made
    finally:
        made.close()


@pytest.fixture
def client(looking: Broker) -> Iterator[Client]:
    with Client(looking.bootstrap_servers, complete=looking.kind == "kafka") as made:
        yield made


def topics_of(client: Client, group: str) -> list[str]:
    """Return the topics of the group's offsets."""
    return sorted(topic.name for topic in fetch_offsets(client, group, None).topics)


def keep(client: Client, group: str, topic: str, retention_ms: int, member: Member | None) -> None:
    who = {}
    if member is not None:
        who = {"generation": member.generation, "member_id": member.member_id}
    codes = commit(client, 4, group, {topic: [0]}, retention_time=retention_ms, **who)
    assert codes == {(topic, 0): Code.NONE}


def join_alone(member: Member) -> Member:
    """Make the stable, only member of a new group.

    It joins at once: while a member has its id to come back with and nothing else, its group is
    empty, and may have gone when it does.
    """
    return alone(member, version=3)


def test_the_last_offset_that_expires_takes_a_simple_group_along(
    client: Client, group: str, topic: str, other_topic: str
) -> None:
    keep(client, group, topic, HOUR_MS, None)
    keep(client, group, other_topic, 0, None)
    assert eventually(lambda: topics_of(client, group), [topic]) == [topic]
    assert group in listed_groups(client)
    keep(client, group, topic, 0, None)
    assert eventually(lambda: group in listed_groups(client), False) is False
    assert topics_of(client, group) == []


def test_a_group_that_was_left_without_offsets_goes(client: Client, group: str) -> None:
    member = join_alone(Member(client, group))
    assert listed_groups(client)[group] == ("consumer", "Stable")
    member.leave()
    assert eventually(lambda: group in listed_groups(client), False) is False


def test_what_consumers_are_subscribed_to_stays(
    client: Client, group: str, topic: str, other_topic: str
) -> None:
    member = join_alone(Member(client, group, topics=(topic,)))
    for each in (topic, other_topic):
        keep(client, group, each, 0, member)
    assert eventually(lambda: topics_of(client, group), [topic]) == [topic]
    member.leave()
    assert eventually(lambda: group in listed_groups(client), False) is False


def test_what_a_transaction_is_about_to_replace_stays(
    client: Client, group: str, topic: str, other_topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    producer.stage_offset(group, topic, 9)
    for each in (topic, other_topic):
        keep(client, group, each, 0, None)
    assert eventually(lambda: topics_of(client, group), [topic]) == [topic]
    producer.abort()
    assert eventually(lambda: group in listed_groups(client), False) is False


@pytest.fixture
def wide(client: Client, unique: Callable[[str], str]) -> str:
    name = unique("wide")
    create_topic(client, name, partitions=20)
    return name


def test_partitions_expire_one_by_one(client: Client, group: str, wide: str) -> None:
    commit(client, 4, group, {wide: list(range(0, 20, 2))}, retention_time=HOUR_MS)
    commit(client, 4, group, {wide: list(range(1, 20, 2))}, retention_time=0)

    def kept() -> list[int]:
        [topic] = fetch_offsets(client, group, None).topics
        return sorted(part.partition_index for part in topic.partitions)

    assert eventually(kept, list(range(0, 20, 2))) == list(range(0, 20, 2))
