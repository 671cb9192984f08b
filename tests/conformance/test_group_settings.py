"""Test a broker that converts no group with members, and whose classic groups are small."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests import brokers
from tests.brokers import SETTINGS, Broker
from tests.conformance import calls
from tests.conformance.calls import eventually
from tests.conformance.consumers import Consumer
from tests.conformance.members import Member, alone, together
from tests.conformance.migrants import Migrant, kind
from tests.conformance.wire import Api, Client

DELAY_MS = 150
OWN = {
    "group.consumer.migration.policy": "disabled",
    "group.max.size": "2",
    "group.initial.rebalance.delay.ms": str(DELAY_MS),
}


@pytest.fixture(scope="module")
def strict(broker: Broker) -> Iterator[Broker]:
    """Start a broker of the same kind with settings of its own."""
    if broker.kind == "address":
        pytest.skip("its settings are somebody else's")
    made = brokers.make(broker.kind, {**SETTINGS, **OWN})
    try:
        made.start()
        with Client(made.bootstrap_servers) as client:
            found = client.send(Api.FIND_COORDINATOR, 2, key="anything", key_type=0)
            assert found.error_code == Code.NONE, found
        yield made
    finally:
        made.close()


@pytest.fixture
def connect(strict: Broker) -> Iterator[Callable[[], Client]]:
    made: list[Client] = []

    def connect_one() -> Client:
        made.append(Client(strict.bootstrap_servers, complete=strict.kind == "kafka"))
        return made[-1]

    yield connect_one
    for each in made:
        each.close()


@pytest.fixture
def one(client: Client, unique: Callable[[str], str]) -> tuple[str, UUID]:
    """Create a topic and return it with its id."""
    name = unique("one")
    calls.create_topic(client, name)
    return name, calls.topic_id(client, name)


# The policy


def test_a_classic_group_with_members_is_not_converted(
    connect: Callable[[], Client], group: str
) -> None:
    old = Migrant(connect(), group).stable_alone({})
    new = Consumer(connect(), group)
    answer = new.send(
        member_epoch=0,
        rebalance_timeout=60_000,
        subscribed_topic_names=["words"],
        topic_partitions=(),
    )
    assert (answer.error_code, answer.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        (
            f"Cannot upgrade classic group {group} to consumer group because online upgrade is "
            "disabled."
        ),
    )
    assert old.heartbeat() == Code.NONE
    old.leave()
    assert new.join("words").member_epoch == 2, "an empty one makes way all the same"


def test_a_classic_member_can_t_join_a_consumer_group(
    client: Client, connect: Callable[[], Client], group: str
) -> None:
    new = Consumer(connect(), group)
    new.join("words")
    old = Migrant(connect(), group)
    old.topics = ("words",)
    assert old.joined(old.post_join(9)).error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    assert new.leave().error_code == Code.NONE
    assert kind(client, group) == "consumer Empty"


# group.initial.rebalance.delay.ms


def test_who_comes_while_a_new_group_waits_for_more_is_in_its_first_generation(
    connect: Callable[[], Client], group: str
) -> None:
    first, second = Member(connect(), group), Member(connect(), group)
    first.warm_up()
    for each in (first, second):
        each.ask_for_id()
    begin = time.monotonic()
    joining = [each.post_join() for each in (first, second)]
    answers = [each.joined(number) for each, number in zip((first, second), joining, strict=True)]
    assert time.monotonic() - begin >= DELAY_MS / 1_000
    assert [answer.generation_id for answer in answers] == [1, 1]
    assert sum(len(answer.members) for answer in answers) == 2


def test_a_group_that_was_empty_waits_again(connect: Callable[[], Client], group: str) -> None:
    first, second = alone(Member(connect(), group)), Member(connect(), group)
    first.leave()
    begin = time.monotonic()
    second.join()
    assert time.monotonic() - begin >= DELAY_MS / 1_000


def test_a_group_with_members_waits_for_them_and_for_nobody_else(
    connect: Callable[[], Client], group: str
) -> None:
    first = alone(Member(connect(), group))
    took = []
    for _ in range(5):  # one of them is quick, however busy the machine
        begin = time.monotonic()
        first.join()
        took.append(time.monotonic() - begin)
    assert min(took) < DELAY_MS / 1_000


# group.max.size


def test_a_full_group_turns_newcomers_away(connect: Callable[[], Client], group: str) -> None:
    first, second = alone(Member(connect(), group)), Member(connect(), group)
    together(first, second)
    for version in (3, 4, 9):
        other = Member(connect(), group)
        answer = other.joined(other.post_join(version))
        assert (answer.error_code, answer.member_id) == (Code.GROUP_MAX_SIZE_REACHED, "")
    nothing = Member(connect(), group, protocols=())
    answer = nothing.joined(nothing.post_join())
    assert answer.error_code == Code.GROUP_MAX_SIZE_REACHED, "whatever else is wrong with it"
    assert first.heartbeat() == second.heartbeat() == Code.NONE


def test_ids_are_given_to_more_members_than_there_is_room_for(
    client: Client, connect: Callable[[], Client], group: str
) -> None:
    """Check that the first that join are in; one that comes late is out, though it was a member."""

    def members() -> int:
        (found,) = client.send(Api.DESCRIBE_GROUPS, 5, groups=[group]).groups
        return len(found.members)

    first, second, third = (Member(connect(), group, rebalance_timeout_ms=700) for _ in range(3))
    alone(first)
    for each in (second, third):
        each.ask_for_id()
    joining = [each.post_join() for each in (second, third)]
    assert eventually(members, 3) == 3
    answer = first.joined(first.post_join())
    assert (answer.error_code, answer.member_id) == (Code.GROUP_MAX_SIZE_REACHED, "")
    assert first.heartbeat() == Code.UNKNOWN_MEMBER_ID
    for each, number in zip((second, third), joining, strict=True):
        assert each.joined(number).error_code == Code.NONE
    assert members() == 2
