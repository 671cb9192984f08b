"""Test what the report of a group says of members, tasks and lags, and how it is printed."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from rich.console import Console

from streams import App, ConfigError, serdes, topics
from streams.commands.group_command import find_hidden_topics, print_report
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import AuthorizationError
from streams.membership.group_description import GroupDescription, MemberDescription
from streams.membership.protocol import (
    RUNNING_OFFSET,
    AssignmentInfo,
    SubscriptionInfo,
    encode_assignment,
    encode_subscription,
)
from streams.membership.streams.described_group import StreamsGroupDescription
from streams.monitoring.group_report import (
    GroupReport,
    TopicOffsets,
    build_report,
    decode_members,
    list_report_partitions,
)
from streams.monitoring.streams_group_members import MissingTopics, find_missing_topics
from streams.topology.build import Topology
from streams.topology.declared import declare_topology
from streams.topology.description import describe_topology
from streams.topology.streams_group_topology import CHANGELOG, INPUT, SentTopic, SentTopology

COUNTS = {"x": 2, "users": 2, "a-counts-changelog": 2}
ENDS = {
    Partition("x", 0): 100,
    Partition("x", 1): 50,
    Partition("users", 0): 10,
    Partition("users", 1): 20,
    Partition("a-counts-changelog", 0): 30,
    Partition("a-counts-changelog", 1): 40,
}
COMMITTED = {
    Partition("x", 0): 90,
    Partition("x", 1): 50,
    Partition("users", 0): 7,
}


@cache
def topology() -> Topology:
    """Build a topology with a count of `x` and a table that its topic `users` restores."""
    app = App("a", topology_optimization="all")
    app.stream("x", key=serdes.string, value=serdes.string).group_by_key().count(store="counts")
    app.table("users", key=serdes.string, value=serdes.string, store="users-store")
    return app.topology()


def member(name: str, assigned: AssignmentInfo, **fields: Any) -> MemberDescription:
    declared = declare_topology(describe_topology(topology()))
    subscription = SubscriptionInfo((), **{"generation": 3, "directory": f"dir-{name}", **fields})
    return MemberDescription(
        f"{name}-id",
        name,
        "/10.0.0.1",
        encode_subscription(topology().source_topics, subscription, declared),
        encode_assignment(assigned),
    )


def report(*members: MemberDescription, state: str = "Stable") -> GroupReport:
    decoded = decode_members("a", GroupDescription(state, "consumer", "stream", members))
    held = {partition: OffsetAndMetadata(offset, "") for partition, offset in COMMITTED.items()}
    partitions = list_report_partitions("a", decoded, COUNTS, held)
    ends = {partition: ENDS[partition] for partition in partitions}
    return build_report("a", state, decoded, TopicOffsets(COUNTS, held, ends))


def print_text(given: GroupReport) -> str:
    console = Console(file=io.StringIO(), width=1_000)
    print_report(given, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def one() -> MemberDescription:
    return member(
        "one",
        AssignmentInfo(
            ("0_0", "1_1"), (("x", 0), ("users", 1)), revoked=("0_1",), standby=("1_0",)
        ),
        offsets={"0_0": RUNNING_OFFSET, "1_0": 5},
    )


def two() -> MemberDescription:
    return member(
        "two",
        AssignmentInfo((), (), warmup=("0_0", "0_1", "1_1"), rejoin_ms=60_000),
        offsets={"0_0": 12, "0_1": 45},
        generation=4,
    )


def lags(tasks: Any) -> Mapping[str, int | None]:
    return {each.task: getattr(each, "lag", getattr(each, "lag_max", None)) for each in tasks}


def test_an_active_task_is_behind_by_what_is_not_committed_of_its_partitions() -> None:
    first, second = report(two(), one()).members
    assert (first.instance_id, second.instance_id) == ("one", "two")
    assert lags(first.active) == {"0_0": 10, "1_1": None}
    assert lags(second.active) == {}
    assert first.revoked == ["0_1"]
    assert first.host == "10.0.0.1"


def test_a_task_of_a_partition_that_nothing_was_ever_written_to_is_not_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ENDS, Partition("users", 1), 0)
    assert lags(report(two(), one()).members[0].active) == {"0_0": 10, "1_1": 0}


def test_a_copy_is_behind_by_its_changelog_at_most_and_a_table_by_the_committed_offset() -> None:
    first, second = report(one(), two()).members
    assert lags(second.warmup) == {"0_0": 30 - 12, "0_1": 0, "1_1": None}
    assert lags(first.standby) == {"1_0": 2}


def test_partitions_that_nobody_has_are_told_and_those_that_are_given_up_are_not() -> None:
    given = report(one(), two())
    assert [(each.topic, each.partition, each.lag) for each in given.unassigned] == [
        ("users", 0, 3)
    ]
    assert given.former_generation == 4


def test_in_a_rebalance_members_are_told_and_nothing_of_their_tasks() -> None:
    blank = one()._replace(subscription=b"", assignment=b"")
    given = report(blank, state="PreparingRebalance")
    assert [(each.instance_id, each.active) for each in given.members] == [("one", [])]
    assert "look again in a moment" in print_text(given)


def test_a_group_without_members_is_behind_by_all_that_was_committed() -> None:
    given = report(state="Empty")
    assert [each.lag for each in given.unassigned] == [3, 10, 0]
    assert "no worker runs" in print_text(given)


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff", b"garbage"])
def test_members_of_another_program_are_refused(data: bytes) -> None:
    with pytest.raises(ConfigError, match="member 'one-id' speaks 'consumer'"):
        report(one()._replace(subscription=data))


def test_the_table_has_a_row_for_each_member_and_each_copy_of_a_task() -> None:
    text = print_text(report(one(), two()))
    rows = [line.split() for line in text.splitlines()]
    tasks = ["2", "active", "1", "standby", "1", "revoking"]
    assert ["one", "10.0.0.1", "dir-one", "3", *tasks, "10"] in rows
    assert ["0_0", "active", "one", "x[0]", "10"] in rows
    assert ["0_0", "warm-up", "two", "changelogs", "≤", "18"] in rows
    assert ["1_0", "standby", "one", "changelogs", "≤", "2"] in rows
    assert "two joins again after 60000 ms" in text
    assert "read by no member: users[0] (lag 3)" in text


def test_where_two_versions_run_each_task_has_that_of_its_member() -> None:
    given = report(one(), two())
    first, second = given.members
    other = replace(second, topology="0123456789abcdef")
    text = print_text(replace(given, members=[first, other]))
    rows = [line.split() for line in text.splitlines()]
    assert [first.topology[:8], "0_0", "active", "one", "x[0]", "10"] in rows
    assert ["01234567", "0_0", "warm-up", "two", "changelogs", "≤", "18"] in rows
    assert "2 versions of the topology run side by side: each numbers its tasks itself" in text


def test_json_has_the_same() -> None:
    found = json.loads(report(one(), two()).as_json())
    assert found["members"][1]["warmup"] == [
        {"task": "0_0", "lag_max": 18},
        {"task": "0_1", "lag_max": 0},
        {"task": "1_1", "lag_max": None},
    ]
    assert found["members"][0]["active"][0]["partitions"] == [
        {"topic": "x", "partition": 0, "committed_offset": 90, "end_offset": 100, "lag": 10}
    ]


def test_the_topics_of_a_pattern_are_those_to_which_a_member_subscribes() -> None:
    app = App("a")
    app.stream(topics.matching("x.*"), key=serdes.string, value=serdes.string).to("copy")
    declared = declare_topology(describe_topology(app.topology()))
    subscription = SubscriptionInfo((), generation=3, directory="dir")
    assigned = AssignmentInfo(("0_0",), (("x", 0),))
    one = MemberDescription(
        "one-id",
        "one",
        "/10.0.0.1",
        encode_subscription(["x"], subscription, declared),
        encode_assignment(assigned),
    )
    (found,) = report(one).members
    assert [(each.topic, each.lag) for each in found.active[0].partitions] == [("x", 10)]


def find_missing(
    state: str, *missing: str, hidden: Collection[str] = (), has_run: bool = False
) -> MissingTopics:
    topics = {("x", INPUT): SentTopic(0), ("a-c-changelog", CHANGELOG): SentTopic(0)}
    group = StreamsGroupDescription(state, 2, 2, (), {}, {}, SentTopology(topics))
    description = GroupDescription(state, "streams", "streams", (), group)
    there = {topic: 1 for topic, _ in topics if topic not in missing}
    return find_missing_topics(
        description, there, lambda found: set(hidden) & set(found), has_run=has_run
    )


def waiting(**fields: Any) -> GroupReport:
    return replace(report(one(), state="NotReady"), protocol="streams", **fields)


def test_topics_that_a_group_waits_for_are_found_where_it_is_not_ready() -> None:
    changelog = "a-c-changelog"
    assert find_missing("NotReady", "x", changelog) == MissingTopics(("x",), (changelog,))
    assert find_missing("NotReady") == MissingTopics(has_run=True)
    for state in ("Stable", "Empty"):
        assert find_missing(state, "x") == MissingTopics(), "it may be hidden from this user"


def test_topics_that_this_user_may_not_describe_are_not_missing() -> None:
    found = find_missing("NotReady", "x", "a-c-changelog", hidden=["x"])
    assert found == MissingTopics((), ("a-c-changelog",), ("x",))
    told = print_text(waiting(hidden_topics=("x",)))
    assert "this user may not describe x: whether they are there is not known" in told
    assert "are missing" not in told
    assert "wrong numbers" not in told


class FakeAdmin:
    """Answers that a user may describe all topics but those of one prefix."""

    def check_topic_rights(self, operations: Mapping[str, Sequence[str]]) -> None:
        for topic, (operation, *_) in operations.items():
            if topic.startswith("secret"):
                raise AuthorizationError(operation, "topic", topic)


def test_each_topic_is_looked_at_for_whether_it_is_hidden() -> None:
    admin: Any = FakeAdmin()
    assert find_hidden_topics(admin, ["secret-1", "x", "secret-2"]) == {"secret-1", "secret-2"}


def test_an_input_may_have_been_read_where_offsets_or_internal_topics_are_left() -> None:
    changelog = "a-c-changelog"
    assert find_missing("NotReady", "x").has_run
    assert find_missing("NotReady", "x", changelog, has_run=True).has_run
    assert find_missing("NotReady", "x", changelog, hidden=[changelog]).has_run
    assert not find_missing("NotReady", "x", changelog).has_run


def test_inputs_that_a_group_waits_for_have_each_a_number_of_partitions_of_its_own() -> None:
    told = print_text(waiting(missing_topics=("x", "y")))
    assert "topics x, y are missing: create them with `millrace create-topics x --part" in told
    assert " and `millrace create-topics y --partitions NUMBER" in told


def test_an_input_that_may_have_been_read_is_not_just_created_again() -> None:
    told = print_text(waiting(missing_topics=("x",), has_run=True))
    assert "source topics x are missing, and may have been read before" in told
    assert "millrace doctor" in told
    assert "(see MR-035)" in told
    assert "create-topics" not in told


def test_a_group_that_is_not_ready_may_wait_for_the_broker_to_look_again() -> None:
    told = print_text(waiting(missing_internal_topics=("a-c-changelog",)))
    assert "internal topics a-c-changelog are missing: the broker" in told
    told = print_text(waiting())
    assert "topics have wrong numbers of partitions, or the broker has not looked since" in told
