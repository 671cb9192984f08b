"""Test that the server's assignors assign every partition once, balanced and sticky."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignors.server import range as range_assignor
from coordinator.assignors.server import uniform
from coordinator.assignors.server.subscription import MemberSubscription, TopicPartitions
from tests.unit.properties import examples

A, B, C, D = (UUID(int=n) for n in range(1, 5))
Assign = Callable[
    [Mapping[str, MemberSubscription], Mapping[UUID, int]], Mapping[str, TopicPartitions]
]
BOTH = pytest.mark.parametrize("assign", [uniform.assign, range_assignor.assign])

# D is never among the topics that exist: a topic may be deleted while members are subscribed to it.
PARTITIONS = st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 12))
TOPICS = st.frozensets(st.sampled_from([A, B, C, D]))
NAMES = st.sampled_from("abcdef")
INSTANCES = st.none() | st.sampled_from("xyz")


@st.composite
def groups(
    draw: st.DrawFn, topics: st.SearchStrategy[frozenset[UUID]]
) -> dict[str, MemberSubscription]:
    """Draw members with earlier targets that don't overlap; topics may have changed since."""
    owners = draw(
        st.dictionaries(st.tuples(st.sampled_from([A, B, C, D]), st.integers(0, 12)), NAMES)
    )
    members = {}
    for name in draw(st.sets(NAMES, min_size=1)):
        mine: dict[UUID, set[int]] = {}
        for (topic, partition), owner in owners.items():
            if owner == name:
                mine.setdefault(topic, set()).add(partition)
        assigned = {topic: frozenset(held) for topic, held in mine.items()}
        members[name] = MemberSubscription(
            draw(topics), assigned, instance_id=draw(INSTANCES) and f"{name}-static"
        )
    return members


ANY_GROUP = groups(TOPICS)
ALIKE = TOPICS.flatmap(lambda topics: groups(st.just(topics)))


def pairs(assigned: TopicPartitions) -> set[tuple[UUID, int]]:
    return {(topic, partition) for topic, mine in assigned.items() for partition in mine}


def rejoin_members(
    members: Mapping[str, MemberSubscription], targets: Mapping[str, TopicPartitions]
) -> dict[str, MemberSubscription]:
    return {
        name: MemberSubscription(m.topics, targets.get(name, {}), m.rack_id, m.instance_id)
        for name, m in members.items()
    }


@BOTH
@examples(50)
@given(members=ANY_GROUP, partitions=PARTITIONS)
def test_each_partition_of_a_subscribed_topic_has_one_subscriber(
    assign: Assign, members: dict[str, MemberSubscription], partitions: dict[UUID, int]
) -> None:
    targets = assign(members, partitions)
    assert targets.keys() == members.keys()
    owners = Counter(pair for target in targets.values() for pair in pairs(target))
    subscribed = {topic for member in members.values() for topic in member.topics}
    assert owners == Counter(
        (topic, partition)
        for topic, count in partitions.items()
        if topic in subscribed
        for partition in range(count)
    )
    for name, target in targets.items():
        assert target.keys() <= members[name].topics
        assert all(target.values()), "no empty sets"


@BOTH
@examples(50)
@given(members=ANY_GROUP, partitions=PARTITIONS)
def test_a_target_that_stays_is_the_same_object(
    assign: Assign, members: dict[str, MemberSubscription], partitions: dict[UUID, int]
) -> None:
    targets = assign(members, partitions)
    for name, target in targets.items():
        assert target is members[name].assigned or target != members[name].assigned


@BOTH
@examples(50)
@given(members=ANY_GROUP, partitions=PARTITIONS)
def test_assigning_again_changes_nothing(
    assign: Assign, members: dict[str, MemberSubscription], partitions: dict[UUID, int]
) -> None:
    targets = assign(members, partitions)
    assert assign(rejoin_members(members, targets), partitions) == targets


@BOTH
@examples(50)
@given(members=ANY_GROUP, partitions=PARTITIONS)
def test_the_order_of_the_arguments_does_not_matter(
    assign: Assign, members: dict[str, MemberSubscription], partitions: dict[UUID, int]
) -> None:
    backwards = {
        name: MemberSubscription(
            m.topics, dict(reversed(list(m.assigned.items()))), m.rack_id, m.instance_id
        )
        for name, m in reversed(members.items())
    }
    assert assign(backwards, dict(reversed(partitions.items()))) == assign(members, partitions)


@examples(50)
@given(members=ALIKE, partitions=PARTITIONS)
def test_uniform_is_balanced_and_moves_only_what_is_over_a_quota(
    members: dict[str, MemberSubscription], partitions: dict[UUID, int]
) -> None:
    targets = uniform.assign(members, partitions)
    sizes = [len(pairs(target)) for target in targets.values()]
    assert max(sizes) - min(sizes) <= 1

    topics = next(iter(members.values())).topics
    exist = {(t, p) for t, n in partitions.items() if t in topics for p in range(n)}
    base, larger = divmod(len(exist), len(members))
    had = {name: pairs(member.assigned) & exist for name, member in members.items()}
    moved = sum(len(had[name] - pairs(targets[name])) for name in members)
    # Members with more than the base lose the rest, except for `larger` ones that keep one more.
    over = sorted((len(mine) - base for mine in had.values() if len(mine) > base), reverse=True)
    assert moved == sum(over) - min(larger, len(over))


@examples(50)
@given(members=ANY_GROUP, partitions=PARTITIONS)
def test_uniform_leaves_no_partition_where_another_subscriber_has_two_fewer(
    members: dict[str, MemberSubscription], partitions: dict[UUID, int]
) -> None:
    targets = uniform.assign(members, partitions)
    sizes = {name: len(pairs(target)) for name, target in targets.items()}
    for name, other in combinations(members, 2):
        few, many = sorted((name, other), key=lambda n: sizes[n])
        if targets[many].keys() & members[few].topics:
            assert sizes[many] - sizes[few] <= 1


@examples(50)
@given(members=ANY_GROUP, partitions=PARTITIONS, leaver=NAMES)
def test_when_a_member_leaves_nobody_else_gives_up_what_it_need_not(
    members: dict[str, MemberSubscription], partitions: dict[UUID, int], leaver: str
) -> None:
    subscription = next(iter(members.values())).topics
    alike = {name: MemberSubscription(subscription, m.assigned) for name, m in members.items()}
    before = uniform.assign(alike, partitions)
    rest = {name: m for name, m in rejoin_members(alike, before).items() if name != leaver}
    after = uniform.assign(rest, partitions)
    for name in rest:
        assert pairs(before[name]) <= pairs(after[name])


@examples(50)
@given(members=ANY_GROUP, count=st.integers(1, 12))
def test_range_co_partitions_topics_that_are_alike(
    members: dict[str, MemberSubscription], count: int
) -> None:
    both = {
        name: MemberSubscription(frozenset([A, B]) if m.topics else frozenset(), {}, None, name)
        for name, m in members.items()
    }
    for target in range_assignor.assign(both, {A: count, B: count, C: 1}).values():
        assert target.get(A) == target.get(B)


def test_range_gives_partitions_in_a_row_static_members_first() -> None:
    topics = frozenset([A, B])
    members = {
        "m1": MemberSubscription(topics, {}),
        "m2": MemberSubscription(frozenset([A]), {}),
        "m3": MemberSubscription(topics, {}, instance_id="zz"),
        "m4": MemberSubscription(topics, {}, instance_id="yy"),
    }
    assert range_assignor.assign(members, {A: 7, B: 2}) == {
        "m4": {A: {0, 1}, B: {0}},
        "m3": {A: {2, 3}, B: {1}},
        "m1": {A: {4, 5}},
        "m2": {A: {6}},
    }


def test_uniform_spreads_what_is_free_topic_by_topic() -> None:
    topics = frozenset([A, B])
    members = {name: MemberSubscription(topics, {}) for name in "xyz"}
    assert uniform.assign(members, {A: 3, B: 2}) == {
        "x": {A: {0}},
        "y": {A: {1, 2}},
        "z": {B: {0, 1}},
    }


def test_a_partition_that_two_members_claim_goes_to_one() -> None:
    both = {A: frozenset([0, 1])}
    members = {name: MemberSubscription(frozenset([A]), both) for name in "xy"}
    assert uniform.assign(members, {A: 2}) == {"x": {A: {0}}, "y": {A: {1}}}
    members["y"] = MemberSubscription(frozenset([A, B]), both)
    assert uniform.assign(members, {A: 2, B: 1}) == {"x": {A: {0, 1}}, "y": {B: {0}}}


@BOTH
def test_a_group_without_members_gets_nothing(assign: Assign) -> None:
    assert assign({}, {A: 3}) == {}
