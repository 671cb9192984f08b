"""Test a group with several topology versions: each input partition has one fitting owner."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import App, serdes, topics
from streams.common.topic_partitions import Partition
from streams.errors import TopologyRefused
from streams.membership.protocol import (
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streams.runtime.assigning.assignment import StreamsPartitionAssignor, name_task_by_topic
from streams.runtime.assigning.topology_versions import find_tasks, find_versions
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from streams.topology.compatibility import find_conflicts
from streams.topology.declared import declare_topology
from streams.topology.description import describe_topology
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

PARTITIONS = {"a": 3, "b": 2, "c": 1, "d": 2, "out": 1}
TOPICS = ("a", "b", "c", "d")


@cache
def topology(*subs: str) -> Topology:
    """Build a topology with one sub-topology for each of `subs`, whose letters are merged topics.

    A `+` at its end counts them in a store, a `-` in one of another name, a `*` in a store behind a
    repartition topic.
    """
    app = App("app")
    for sub in subs:
        first, *others = (
            app.stream(topic, key=serdes.string, value=serdes.string) for topic in sub.rstrip("+-*")
        )
        for other in others:
            first = first.merge(other, co_partitioned=False)
        if "+" in sub or "-" in sub:
            name = "of" if "+" in sub else "other-of"
            first.group_by_key().count(store=f"{name}-{sub.rstrip('+-*')}")
        else:
            first.to("out")
        if sub.endswith("*"):
            first.group_by(lambda k, v: v, key=serdes.string).count(store=f"by-{sub[0]}")
    return app.topology()


def planner(*subs: str, kafka: Kafka | None = None) -> StreamsPartitionAssignor:
    admin = FakeAdmin(kafka or Kafka(PARTITIONS), Script())
    return StreamsPartitionAssignor(topology(*subs), StreamsConfig(), admin)


def says(
    *subs: str,
    runs: tuple[str, ...] = (),
    ran: tuple[str, ...] = (),
    generation: int = 4,
) -> SubscriptionInfo:
    """Return the leader's view of a member of a version, decoded from the member's bytes."""
    data = encode_subscription(
        topology(*subs).source_topics,
        SubscriptionInfo(runs, former=ran, generation=generation),
        planner(*subs).declared,
    )
    return decode_subscription(data)


def plan(
    leader: tuple[str, ...], members: dict[str, SubscriptionInfo]
) -> dict[str, AssignmentInfo]:
    given = planner(*leader).assign_group(members)
    return {
        member: decode_assignment(encode_assignment(assigned)) for member, assigned in given.items()
    }


@st.composite
def versions(draw: Any) -> tuple[str, ...]:
    """Draw topics in sub-topologies in any order, some of which have a store."""
    topics = draw(st.lists(st.sampled_from(TOPICS), unique=True, min_size=1))
    subs: list[str] = []
    for topic in topics:
        if subs and draw(st.booleans()) and draw(st.booleans()):
            subs[-1] = "".join(sorted(subs[-1] + topic))
        else:
            subs.append(topic)
    return tuple(sub + draw(st.sampled_from(["", "+", "-"])) for sub in subs)


MEMBERS = st.lists(
    st.tuples(
        st.integers(0, 2),  # which version
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=3),  # what it runs
    ),
    min_size=1,
    max_size=5,
)


def group(kinds: list[tuple[str, ...]], drawn: list[Any]) -> dict[str, SubscriptionInfo]:
    return {
        f"m{n}": says(
            *kinds[version % len(kinds)],
            runs=tuple(f"{sub}_{partition}" for sub, partition in runs),
        )
        for n, (version, runs) in enumerate(drawn)
    }


@given(st.lists(versions(), min_size=1, max_size=3), MEMBERS)
def test_every_partition_that_an_admitted_version_reads_has_one_owner_that_has_it(
    kinds: list[tuple[str, ...]], drawn: list[Any]
) -> None:
    members = group(kinds, drawn)
    version_of = {f"m{n}": kinds[version % len(kinds)] for n, (version, _) in enumerate(drawn)}
    given_ = plan(version_of["m0"], members)
    assert given_.keys() == members.keys()
    admitted = {member for member, assigned in given_.items() if not assigned.refused}
    assert admitted
    owners = Counter(Partition(*p) for assigned in given_.values() for p in assigned.partitions)
    for member, assigned in given_.items():
        mine = find_tasks(planner(*version_of[member]).declared.subtopologies, PARTITIONS)
        owners.update(p for task in assigned.revoked for p in mine.get(task, ()))
    read = {topic for member in admitted for topic in topology(*version_of[member]).source_topics}
    assert owners == {Partition(t, n): 1 for t in read for n in range(PARTITIONS[t])}
    for member, assigned in given_.items():
        mine = find_tasks(planner(*version_of[member]).declared.subtopologies, PARTITIONS)
        assert {Partition(*p) for p in assigned.partitions} == {
            partition for task in assigned.tasks for partition in mine[task]
        }
        declared = members[member].topology
        assert declared is not None
        assert not assigned.is_for_other_topology(declared)
    first, *_ = find_versions(members)
    assert set(first.members) <= admitted  # The version that runs most tasks goes on.
    for one in admitted:
        for other in admitted:
            a, b = members[one].topology, members[other].topology
            assert a is not None
            assert b is not None
            assert not find_conflicts(a, b, ("a", "b"))


@given(st.lists(versions(), min_size=1, max_size=3), MEMBERS)
def test_whoever_leads_admits_the_same(kinds: list[tuple[str, ...]], drawn: list[Any]) -> None:
    members = group(kinds, drawn)
    refused = {
        frozenset(m for m, each in plan(kinds[v % len(kinds)], members).items() if each.refused)
        for v, _ in drawn
    }
    assert len(refused) == 1


def test_swapped_sub_topologies_are_handed_out_in_each_members_own_numbers() -> None:
    members = {
        "old": says("a+", "b+", runs=("0_0", "0_1", "0_2", "1_0", "1_1")),
        "new": says("b+", "a+"),
    }
    for leader in (("a+", "b+"), ("b+", "a+")):
        given_ = plan(leader, members)
        assert {p[0] for p in given_["old"].partitions} == {"a", "b"}
        for member, first in (("old", "a"), ("new", "b")):
            for task in given_[member].tasks:
                topic = first if task.startswith("0") else {"a": "b", "b": "a"}[first]
                assert (topic, int(task[2:])) in given_[member].partitions
        assert all("runs 2 versions" in each.notice for each in given_.values())


def test_tasks_stay_where_they_run_though_the_other_version_numbers_them_otherwise() -> None:
    members = {
        "old": says("a+", "b+", runs=("0_0", "0_1")),
        "new": says("b+", "a+", runs=("0_0", "0_1", "1_2")),
    }
    for leader in (("a+", "b+"), ("b+", "a+")):
        given_ = plan(leader, members)
        assert given_["old"].tasks == ("0_0", "0_1")
        assert given_["new"].tasks == ("0_0", "0_1", "1_2")


def test_the_version_that_runs_goes_on_and_the_newcomer_is_told_why_on_both_sides() -> None:
    members = {
        "old": says("a+", runs=("0_0", "0_1")),
        "one": says("a-"),
        "two": says("a-"),
    }
    given_ = plan(("a-",), members)
    assert given_["old"].tasks == ("0_0", "0_1", "0_2")
    assert "members one, two were refused" in given_["old"].notice
    for newcomer in ("one", "two"):
        assert given_[newcomer].tasks == ()
        assert "'a' has the stores 'of-a' in the running version" in given_[newcomer].refused
        assert "choose another application id" in given_[newcomer].refused


def test_where_nobody_runs_tasks_the_version_of_most_members_is_the_one_that_runs() -> None:
    members = {"x": says("a+"), "y": says("a-"), "z": says("a-")}
    for leader in (("a+",), ("a-",)):
        given_ = plan(leader, members)
        assert [m for m, each in given_.items() if each.refused] == ["x"]


def test_a_version_that_ran_until_its_members_were_lost_goes_on() -> None:
    """Test that a version goes on after an outage in which all sessions expired.

    Nobody runs tasks when the brokers are back.
    """
    members = {"old": says("a+", ran=("0_0",)), "one": says("a-"), "two": says("a-")}
    for leader in (("a+",), ("a-",)):
        given_ = plan(leader, members)
        assert [m for m, each in given_.items() if each.refused] == ["one", "two"]
        assert given_["old"].tasks == ("0_0", "0_1", "0_2")


def test_who_runs_tasks_goes_on_whatever_others_ran_before() -> None:
    members = {"lost": says("a+", ran=("0_0", "0_1", "0_2")), "now": says("a-", runs=("0_0",))}
    for leader in (("a+",), ("a-",)):
        assert [m for m, each in plan(leader, members).items() if each.refused] == ["lost"]


def test_members_of_a_later_version_have_what_it_has_more() -> None:
    members = {"old": says("a+", runs=("0_0", "0_1", "0_2")), "new": says("b", "a+")}
    for leader in (("a+",), ("b", "a+")):
        given_ = plan(leader, members)
        assert {topic for topic, _ in given_["old"].partitions} == {"a"}
        assert {("b", 0), ("b", 1)} <= set(given_["new"].partitions)


def owners_of(given_: dict[str, AssignmentInfo]) -> dict[int, str]:
    """Return which member has each partition of topic `a`."""
    return {n: m for m, each in given_.items() for topic, n in each.partitions if topic == "a"}


@pytest.mark.parametrize(("smaller", "larger"), [("a", "a+"), ("a", "a*"), ("a+", "a+*")])
def test_a_task_goes_to_the_version_with_more_stores_and_never_back(
    smaller: str, larger: str
) -> None:
    """Test that a store that only one version has is never filled with gaps.

    Records that a member without the store processes are missing in it: before a task has come to a
    member that has it, and not afterwards.
    """
    x, y = says(smaller, runs=("0_0", "0_1")), says(smaller, runs=("0_2",))
    for leader in ((smaller,), (larger,)):
        joined = owners_of(plan(leader, {"x": x, "y": y, "new": says(larger)}))
        assert {member for number, member in joined.items() if number < 2} <= {"x", "new"}
        assert joined[2] in ("y", "new")
        without_y = owners_of(plan(leader, {"x": x, "new": says(larger)}))
        assert without_y[2] == "new"
        runs = tuple(f"0_{number}" for number in range(3))
        came_back = {"x": says(smaller), "y": says(smaller), "new": says(larger, runs=runs)}
        assert owners_of(plan(leader, came_back)) == dict.fromkeys(range(3), "new")
    alone = plan((smaller,), {"y": says(smaller)})
    assert owners_of(alone) == dict.fromkeys(range(3), "y")


def test_a_leader_makes_no_topics_of_a_topology_that_is_refused() -> None:
    kafka = Kafka(PARTITIONS)
    members = {"old": says("a-", runs=("0_0",)), "new": says("a+")}
    planner("a+", kafka=kafka).assign_group(members)
    assert set(kafka.partition_counts) == set(PARTITIONS)


def test_a_member_makes_the_topics_of_its_own_topology_if_the_leader_has_another() -> None:
    kafka = Kafka(PARTITIONS)
    members = {"old": says("a"), "new": says("a", "b+")}
    given_ = planner("a", kafka=kafka).assign_group(members)
    assert "app-of-b-changelog" not in kafka.partition_counts
    assert planner("a", "b+", kafka=kafka).adopt_assignment(given_["new"]) == given_["new"]
    assert kafka.partition_counts["app-of-b-changelog"] == 2


def test_a_member_that_only_follows_tasks_makes_the_topics_of_its_own_topology_too() -> None:
    """Test that the first warm-up of a new version finds the changelog of each new store."""
    kafka = Kafka(PARTITIONS | {"app-of-b-changelog": 2})
    given_ = planner("b+", kafka=kafka).assign_group({"old": says("b+"), "new": says("b+", "a+")})
    warms_up = given_["new"]._replace(
        tasks=(), partitions=(), warmup=("0_0",), following=(("b", 0),)
    )
    member = planner("b+", "a+", kafka=kafka)
    assert "app-of-a-changelog" not in kafka.partition_counts
    assert member.adopt_assignment(warms_up) == warms_up
    assert kafka.partition_counts["app-of-a-changelog"] == 3


def test_a_member_that_is_refused_ends_with_the_reason() -> None:
    given_ = plan(("a+",), {"old": says("a+", runs=("0_0",)), "new": says("a-")})
    with pytest.raises(TopologyRefused, match="stores 'of-a'"):
        planner("a-").adopt_assignment(given_["new"])


def test_a_notice_is_logged_once_while_it_stays_the_same(caplog: pytest.LogCaptureFixture) -> None:
    members = {"old": says("a", "b"), "new": says("b", "a")}
    member = planner("a", "b")
    for _ in range(3):
        member.adopt_assignment(plan(("a", "b"), members)["old"])
    assert caplog.text.count("runs 2 versions of the topology side by side") == 1


def test_inputs_of_every_version_are_watched_by_the_leader() -> None:
    kafka = Kafka(PARTITIONS)
    leader = planner("a", kafka=kafka)
    leader.assign_group({"old": says("a"), "new": says("a", "b")})
    assert not leader.mend_topics_and_compare_inputs()
    kafka.grow("b", 5)
    assert leader.mend_topics_and_compare_inputs()


def test_a_version_whose_inputs_do_not_exist_is_refused_and_the_leader_goes_on() -> None:
    kafka = Kafka({"a": 1, "out": 1})
    given_ = planner("a", kafka=kafka).assign_group({"old": says("a"), "new": says("a", "b")})
    assert given_["old"].tasks == ("0_0",)
    assert "input topics 'b' do not exist" in given_["new"].refused


def test_a_task_of_two_versions_has_one_name_whatever_its_number() -> None:
    """Test that a task keeps its name, which tells its producer from others, in both versions."""
    old, new = topology("ab+", "c", "d"), topology("d", "ba+", "c")
    assert [name_task_by_topic(old, task) for task in ("0_2", "1_0", "2_1")] == [
        "a_2",
        "c_0",
        "d_1",
    ]
    assert [name_task_by_topic(new, task) for task in ("1_2", "2_0", "0_1")] == [
        "a_2",
        "c_0",
        "d_1",
    ]


def test_a_topic_that_two_patterns_of_another_version_match_changes_the_inputs() -> None:
    kafka = Kafka({"a": 1, "p-one": 1, "q-one": 1, "out": 1})
    leader = planner("a", kafka=kafka)
    newer = App("app")
    for expression in ("p-.*", "q-.*|p-new"):
        matched = newer.stream(topics.matching(expression), key=serdes.string, value=serdes.string)
        matched.to("out")
    newer.stream("a", key=serdes.string, value=serdes.string).to("out")
    declared = declare_topology(describe_topology(newer.topology()))
    other = decode_subscription(
        encode_subscription(("a", "p-one", "q-one"), SubscriptionInfo(()), declared)
    )
    assigned = leader.assign_group({"m": says("a", runs=("0_0",)), "n": other})
    assert assigned["n"].tasks != ()
    assert not leader.mend_topics_and_compare_inputs()
    kafka.create_topic("p-new", 1)
    assert leader.mend_topics_and_compare_inputs()
