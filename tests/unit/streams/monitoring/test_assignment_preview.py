"""Test the preview of what an assignor would give the consumers of a group."""

from __future__ import annotations

import pytest

from coordinator.assignors import consumer_protocol
from coordinator.assignors.subscriptions import ConsumerSubscription
from streams.errors import ConfigError
from streams.membership.consumer_group_description import (
    ConsumerMember,
    decode_consumers,
    fetch_consumers,
)
from streams.membership.group_description import GroupDescription, MemberDescription
from streams.monitoring.assignment_preview import ASSIGNORS, preview_assignment

COUNTS = {"a": 3, "b": 3}
TOPICS = ("a", "b")
RANGES = {
    "one": ConsumerMember(TOPICS, [("a", 0), ("a", 1), ("b", 0), ("b", 1)]),
    "two": ConsumerMember(TOPICS, [("a", 2), ("b", 2)]),
}


def test_ranges_and_what_round_robin_would_move() -> None:
    assert preview_assignment("g", RANGES, COUNTS, "range").moved == 0
    found = preview_assignment("g", RANGES, COUNTS, "roundrobin")
    one, two = found.members
    assert one.now == {"a": [0, 1], "b": [0, 1]}
    assert one.then == {"a": [0, 2], "b": [1]}
    assert (one.gains, one.loses) == ({"a": [2]}, {"a": [1], "b": [0]})
    assert (two.gains, two.loses) == ({"a": [1], "b": [0]}, {"a": [2]})
    assert found.moved == 3


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_assignors_move_no_more_than_they_must(assignor: str) -> None:
    found = preview_assignment("g", RANGES, COUNTS, assignor)
    assert found.moved == 1
    assert [sum(map(len, each.then.values())) for each in found.members] == [3, 3]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_member_that_joins_and_one_that_has_nothing_to_read(assignor: str) -> None:
    members = {**RANGES, "three": ConsumerMember(TOPICS), "idle": ConsumerMember(("c",))}
    found = {
        each.member: each for each in preview_assignment("g", members, COUNTS, assignor).members
    }
    assert found["three"].gains == found["three"].then != {}
    assert found["idle"].then == {}
    given = [(t, n) for each in found.values() for t, all_ in each.then.items() for n in all_]
    assert sorted(given) == [(topic, number) for topic in TOPICS for number in range(3)]


def describe(
    state: str = "Stable", kind: str = "consumer", protocol: str = "range"
) -> GroupDescription:
    said = consumer_protocol.encode_subscription(ConsumerSubscription(("a",)))
    given = consumer_protocol.encode_assignment([("a", 1)])
    member = MemberDescription("m", "i", "/h", said, given)
    return GroupDescription(state, kind, protocol, (member,))


def test_a_stable_group_of_the_classic_protocol_tells_topics_and_partitions() -> None:
    assert decode_consumers("g", describe()) == {"m": ConsumerMember(("a",), [("a", 1)], "i")}


@pytest.mark.parametrize(
    ("description", "why"),
    [
        (describe("PreparingRebalance"), "'g' is PreparingRebalance.*try again"),
        (describe(kind="connect"), "'connect', which are no consumers"),
        (describe(protocol="stream"), "assigns tasks"),
    ],
)
def test_groups_that_no_assignor_is_chosen_for_are_refused(
    description: GroupDescription, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        decode_consumers("g", description)


@pytest.mark.parametrize("protocol", ["share", "unknown"])
def test_groups_of_other_protocols_are_refused(protocol: str) -> None:
    with pytest.raises(ConfigError, match=f"of the protocol '{protocol}'"):
        fetch_consumers(lambda _: pytest.fail("no broker is asked"), "g", protocol)


def test_a_streams_group_is_refused_with_the_command_that_shows_its_tasks() -> None:
    with pytest.raises(ConfigError, match="broker assigns tasks") as refused:
        fetch_consumers(lambda _: pytest.fail("no broker is asked"), "orders", "streams")
    assert "group describe orders" in str(refused.value)
