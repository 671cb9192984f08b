"""Test that a leader's assignors assign partitions once, balanced, sticky, and revoke first."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignors import cooperative_sticky, round_robin, sticky
from coordinator.assignors import range as range_assignor
from coordinator.assignors.subscriptions import Assignment, ConsumerSubscription, Members, Topics
from tests.unit.coordinator.assignors.histories import ASSIGNORS, Group, Round
from tests.unit.properties import examples

NAMES = st.sampled_from("abcdef")
TOPIC_NAMES = ("t", "u", "v")
TOPICS = st.dictionaries(st.sampled_from(TOPIC_NAMES), st.integers(1, 9), min_size=1)
EACH = pytest.mark.parametrize("assignor", ASSIGNORS)
SEEDS = range(40)
ROUNDS_MAX = 6


def without_racks(counts: Mapping[str, int]) -> Topics:
    return {topic: [frozenset()] * count for topic, count in counts.items()}


@st.composite
def groups(draw: st.DrawFn, assignor: str, *, alike: bool) -> dict[str, ConsumerSubscription]:
    """Draw members of generation 5 that own partitions of topics that may have changed since."""
    topics = st.lists(st.sampled_from(TOPIC_NAMES), min_size=1, unique=True).map(sorted)
    same = draw(topics)
    owners = draw(
        st.dictionaries(st.tuples(st.sampled_from(TOPIC_NAMES), st.integers(0, 8)), NAMES)
    )
    members = {}
    for name in sorted(draw(st.sets(NAMES, min_size=1))):
        mine = same if alike else draw(topics)
        owned = [partition for partition, owner in owners.items() if owner == name]
        members[name] = owning(assignor, ConsumerSubscription(mine), owned, 5)
    return members


def owning(
    assignor: str, member: ConsumerSubscription, owned: list[tuple[str, int]], generation: int
) -> ConsumerSubscription:
    """Return the member with its owned partitions encoded the way this assignor reads them."""
    if assignor == sticky.NAME:
        return replace(
            member,
            user_data=sticky.encode_user_data(owned, generation),
            generation=generation,
        )
    return replace(member, owned=owned, generation=generation)


def rejoin_members(
    assignor: str, members: Members, assignment: Assignment
) -> dict[str, ConsumerSubscription]:
    """Return the members as they rejoin after they have received this assignment."""
    return {
        name: owning(assignor, member, assignment[name], member.generation + 1)
        for name, member in members.items()
    }


def settle_assignment(assignor: str, members: Members, topics: Topics) -> Assignment:
    """Return the assignment that stays once nothing is to be revoked, after two rounds or so."""
    before: dict[str, set[tuple[str, int]]] = {}
    for _ in range(ROUNDS_MAX):
        assignment: Assignment = ASSIGNORS[assignor].assign(members, topics)
        now = {name: set(mine) for name, mine in assignment.items()}
        if now == before:
            return assignment
        before = now
        members = rejoin_members(assignor, members, assignment)
    raise AssertionError(f"partitions still move after {ROUNDS_MAX} rounds: {before}")


def sizes(assignment: Assignment) -> dict[str, int]:
    return {name: len(mine) for name, mine in assignment.items()}


def rounds(assignor: str) -> list[tuple[int, Round]]:
    return [
        (seed, each)
        for seed in SEEDS
        for each in Group(random.Random(f"{seed} {assignor}"), assignor).rounds(5)
    ]


@EACH
def test_each_partition_goes_to_one_subscriber(assignor: str) -> None:
    """Check that no partition is assigned twice; one still to be revoked may have no owner."""
    for seed, round_ in rounds(assignor):
        members = round_.members()
        assigned = Counter(each for mine in round_.assignment.values() for each in mine)
        wanted = {
            (topic, partition)
            for member in members.values()
            for topic in member.topics
            for partition in range(len(round_.topics.get(topic, ())))
        }
        held = {partition for member in members.values() for partition in member.owned}
        may_wait = held if assignor == cooperative_sticky.NAME else set()
        assert set(assigned) <= wanted <= set(assigned) | may_wait, f"{seed=}"
        assert set(assigned.values()) <= {1}, f"{seed=}"
        for member, mine in round_.assignment.items():
            assert {topic for topic, _ in mine} <= set(members[member].topics), f"{seed=}"


def test_a_cooperative_member_gets_nothing_that_another_owns() -> None:
    moved = 0
    for seed, round_ in rounds(cooperative_sticky.NAME):
        members = round_.members()
        for (name, mine), (other, theirs) in combinations(members.items(), 2):
            for member, another in ((name, theirs), (other, mine)):
                got = set(round_.assignment[member]) - set(members[member].owned)
                assert not got & set(another.owned), f"{seed=}"
                moved += len(got)
    assert moved > 0


@pytest.mark.parametrize("assignor", [round_robin.NAME, sticky.NAME, cooperative_sticky.NAME])
@examples(50)
@given(data=st.data(), counts=TOPICS)
def test_members_with_the_same_subscription_are_balanced_within_one(
    assignor: str, data: st.DataObject, counts: dict[str, int]
) -> None:
    members = data.draw(groups(assignor, alike=True))
    each = sizes(settle_assignment(assignor, members, without_racks(counts))).values()
    assert max(each) - min(each) <= 1


@pytest.mark.parametrize("assignor", [sticky.NAME, cooperative_sticky.NAME])
@examples(50)
@given(data=st.data(), counts=TOPICS)
def test_no_more_moves_than_balance_takes(
    assignor: str, data: st.DataObject, counts: dict[str, int]
) -> None:
    members = data.draw(groups(assignor, alike=True))
    topics = without_racks(counts)
    wanted = next(iter(members.values())).topics
    exist = {(topic, n) for topic, count in counts.items() if topic in wanted for n in range(count)}
    had = {name: owned_by(assignor, member) & exist for name, member in members.items()}
    assignment = settle_assignment(assignor, members, topics)
    lost = sum(len(had[name].difference(assignment[name])) for name in members)
    base, larger = divmod(len(exist), len(members))
    over = [len(mine) - base for mine in had.values() if len(mine) > base]
    assert lost == sum(over) - min(larger, len(over))


def owned_by(assignor: str, member: ConsumerSubscription) -> set[tuple[str, int]]:
    if assignor == sticky.NAME:
        return set(sticky.decode_user_data(member.user_data or b"")[0])
    return set(member.owned)


@pytest.mark.parametrize("assignor", [sticky.NAME, cooperative_sticky.NAME])
@pytest.mark.parametrize("alike", [True, False])
@examples(50)
@given(data=st.data(), counts=TOPICS)
def test_a_group_settles(
    assignor: str, alike: bool, data: st.DataObject, counts: dict[str, int]
) -> None:
    members = data.draw(groups(assignor, alike=alike))
    topics = without_racks(counts)
    assignment = settle_assignment(assignor, members, topics)
    wanted = {topic for member in members.values() for topic in member.topics}
    assert sum(sizes(assignment).values()) == sum(counts[t] for t in wanted if t in counts)


@examples(50)
@given(data=st.data(), counts=TOPICS)
def test_where_subscriptions_differ_no_partition_could_move_to_balance_better(
    data: st.DataObject, counts: dict[str, int]
) -> None:
    members = data.draw(groups(sticky.NAME, alike=False))
    assignment = sticky.assign(members, without_racks(counts))
    each = sizes(assignment)
    for name, mine in assignment.items():
        for topic in {topic for topic, _ in mine}:
            for other, member in members.items():
                if topic in member.topics:
                    assert each[name] <= each[other] + 1


@examples(50)
@given(members=groups(range_assignor.NAME, alike=False), count=st.integers(1, 9))
def test_range_co_partitions_topics_with_the_same_subscribers(
    members: dict[str, ConsumerSubscription], count: int
) -> None:
    both = {name: replace(each, topics=["t", "u"]) for name, each in members.items()}
    for mine in range_assignor.assign(both, without_racks({"t": count, "u": count})).values():
        assert [n for topic, n in mine if topic == "t"] == [n for topic, n in mine if topic == "u"]


def in_racks(*racks: str) -> list[frozenset[str]]:
    return [frozenset([rack]) for rack in racks]


@pytest.mark.parametrize("assign", [each.assign for each in ASSIGNORS.values()])
def test_members_get_what_is_in_their_rack(assign: Callable[[Members, Topics], Assignment]) -> None:
    members = {
        "m1": ConsumerSubscription(["t"], rack_id="east"),
        "m2": ConsumerSubscription(["t"], rack_id="west"),
    }
    got = assign(members, {"t": in_racks("west", "west", "east", "east")})
    if assign is round_robin.assign:  # which has no racks
        assert got == {"m1": [("t", 0), ("t", 2)], "m2": [("t", 1), ("t", 3)]}
    else:
        assert got == {"m1": [("t", 2), ("t", 3)], "m2": [("t", 0), ("t", 1)]}


def test_the_newer_of_two_claims_holds_and_equal_ones_both_fall() -> None:
    topics = without_racks({"t": 2})
    members = {
        "m1": ConsumerSubscription(["t"], owned=[("t", 0)], generation=1),
        "m2": ConsumerSubscription(["t"], owned=[("t", 0), ("t", 1)], generation=2),
    }
    assert cooperative_sticky.assign(members, topics) == {"m1": [], "m2": [("t", 0)]}
    members["m1"] = replace(members["m1"], generation=2)
    assert cooperative_sticky.assign(members, topics) == {"m1": [], "m2": [("t", 1)]}


def test_a_member_that_has_unsubscribed_does_not_get_back_what_it_had() -> None:
    """Check that a member doesn't get back partitions that Kafka's class moves for ever."""
    topics = without_racks({"t": 5, "u": 1})
    members = {
        "gone": ConsumerSubscription(["u"], owned=[("t", 0)], generation=1),
        "m1": ConsumerSubscription(["t"], owned=[("t", n) for n in range(5)], generation=2),
        "m2": ConsumerSubscription(["t"], generation=2),
    }
    assignment = cooperative_sticky.assign(members, topics)
    assert assignment["gone"] == [("u", 0)]


def test_static_members_come_first() -> None:
    members = {
        "m1": ConsumerSubscription(["t"]),
        "m2": ConsumerSubscription(["t"], instance_id="b"),
        "m3": ConsumerSubscription(["t"], instance_id="a"),
    }
    expected = {"m3": [("t", 0)], "m2": [("t", 1)], "m1": [("t", 2)]}
    assert range_assignor.assign(members, without_racks({"t": 3})) == expected
    assert round_robin.assign(members, without_racks({"t": 3})) == expected


@EACH
def test_a_group_without_members_or_without_topics_gets_nothing(assignor: str) -> None:
    assign = ASSIGNORS[assignor].assign
    assert assign({}, without_racks({"t": 1})) == {}
    assert assign({"m": ConsumerSubscription(["none"])}, without_racks({"t": 1})) == {"m": []}
