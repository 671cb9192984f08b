"""Test what a group's leader assigns: who runs, gives up, copies and warms up each task."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from streams import App, serdes
from streams.common.topic_partitions import Partition
from streams.errors import AuthorizationError, OutcomeUnknown
from streams.membership.protocol import (
    RUNNING_OFFSET,
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.runtime.assigning.group_assignment import hash_partition_counts
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from streams.topology.declared import declare_topology
from streams.topology.description import describe_topology
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

PARTITION_COUNT = 4
LOG_SIZE = 100
TASKS = tuple(f"0_{partition}" for partition in range(PARTITION_COUNT))


@cache
def counting(*topics: str) -> Topology:
    """Build a topology that counts each topic by its keys, in a sub-topology of its own."""
    app = App("a")
    for topic in topics:
        stream = app.stream(topic, key=serdes.string, value=serdes.string)
        stream.group_by_key().count(store=f"of-{topic}")
    return app.topology()


class Group:
    """Holds a group's members, and assigns their tasks round after round as a leader does.

    Every changelog has `LOG_SIZE` records.
    """

    def __init__(self, *topics: str, **settings: Any) -> None:
        self.topics = topics or ("x",)
        self.kafka = Kafka(dict.fromkeys(("x", "y"), PARTITION_COUNT))
        for topic in ("x", "y"):
            changelog = f"a-of-{topic}-changelog"
            self.kafka.create_topic(changelog, PARTITION_COUNT)
            for partition in self.kafka.partitions_of(changelog):
                self.kafka.load(partition, *[("k", "v")] * LOG_SIZE)
        self.script = Script()
        self.admin = FakeAdmin(self.kafka, self.script)
        self.config = StreamsConfig(acceptable_recovery_lag=10, **settings)
        self.leader = StreamsPartitionAssignor(counting(*self.topics), self.config, self.admin)
        self.members: dict[str, SubscriptionInfo] = {}
        self.generation = 1

    def join(self, member: str, *topics: str, **fields: Any) -> None:
        """Let a member subscribe, encoded as it would be; `topics` are of its own topology."""
        topology = counting(*(topics or self.topics))
        fields = {"generation": -1, "tasks": (), "directory": member, **fields}
        self.members[member] = decode_subscription(
            encode_subscription(
                topology.source_topics,
                SubscriptionInfo(**fields),
                declare_topology(describe_topology(topology)),
            )
        )

    def rebalance(self) -> dict[str, AssignmentInfo]:
        """Assign tasks, and let each member say the next time that it has what it was given.

        Copies of state are as far as they were, until a test says more.
        """
        self.generation += 1
        given = {
            member: decode_assignment(encode_assignment(each))
            for member, each in self.leader.assign_group(self.members).items()
        }
        for member, each in given.items():
            before = self.members[member]
            kept = {t: o for t, o in before.offsets.items() if o != RUNNING_OFFSET}
            closed = dict.fromkeys({*before.tasks} - {*each.tasks}, LOG_SIZE)
            self.members[member] = before._replace(
                tasks=each.tasks,
                generation=self.generation,
                standby=(*each.standby, *each.warmup),
                offsets=kept | closed | dict.fromkeys(each.tasks, RUNNING_OFFSET),
            )
        return given

    def restore(self, member: str, *tasks: str, offset: int = LOG_SIZE) -> None:
        """Let the copies of tasks that a member has be as far as `offset`."""
        before = self.members[member]
        self.members[member] = before._replace(
            offsets={**before.offsets, **dict.fromkeys(tasks, offset)}
        )


def active(given: dict[str, AssignmentInfo]) -> dict[str, int]:
    return {member: len(each.tasks) for member, each in given.items()}


def test_a_new_client_warms_up_before_it_gets_tasks_and_one_member_probes() -> None:
    group = Group(max_warmup_replicas=1, probing_rebalance_interval_ms=70_000)
    group.join("a")
    assert group.rebalance()["a"] == AssignmentInfo(
        TASKS,
        tuple(("x", number) for number in range(PARTITION_COUNT)),
        fingerprint=group.leader.declared.fingerprint,
        leader=group.leader.declared.fingerprint,
        inputs_hash=hash_partition_counts({"x": PARTITION_COUNT}),
    )
    group.join("b")
    first = group.rebalance()
    assert active(first) == {"a": 4, "b": 0}
    (warming,) = first["b"].warmup
    assert first["b"].following == (("x", int(warming[-1])),)
    assert sorted(each.rejoin_ms for each in first.values()) == [0, 70_000]

    group.restore("b", warming, offset=LOG_SIZE - 11)
    assert group.rebalance()["b"].warmup == (warming,)  # not near enough

    group.restore("b", warming, offset=LOG_SIZE - 10)
    moving = group.rebalance()
    assert moving["a"].revoked == (warming,)
    assert warming not in moving["a"].tasks
    assert warming in moving["b"].warmup  # it is followed until its owner has closed it
    assert not moving["b"].tasks
    assert [each.rejoin_ms for each in moving.values()] == [0, 0]  # the owner joins again at once

    moved = group.rebalance()
    assert moved["b"].tasks == (warming,)
    assert not moved["a"].revoked
    (second,) = moved["b"].warmup
    group.restore("b", second)
    group.rebalance()
    settled = group.rebalance()
    assert active(settled) == {"a": 2, "b": 2}
    assert not any(each.rejoin_ms or each.warmup or each.revoked for each in settled.values())


def test_standbys_are_in_other_directories_and_take_over_at_once() -> None:
    group = Group(num_standby_replicas=1)
    for member in "abc":
        group.join(member)
    given = group.rebalance()
    for member, each in given.items():
        assert not {*each.tasks} & {*each.standby}, member
    copies = [task for each in given.values() for task in each.standby]
    assert sorted(copies) == sorted(TASKS)
    for member, each in given.items():
        assert {Partition(*p) for p in each.following} == {
            Partition("x", int(task[-1])) for task in each.standby
        }
        group.restore(member, *each.standby)
    lost = group.members.pop("a").tasks
    after = group.rebalance()
    for task in lost:
        (heir,) = (member for member, each in after.items() if task in each.tasks)
        assert task in given[heir].standby
    assert not any(each.revoked for each in after.values())


def test_threads_that_share_a_directory_are_one_client() -> None:
    group = Group(num_standby_replicas=1)
    group.join("a1", directory="a")
    group.join("a2", directory="a")
    given = group.rebalance()
    assert active(given) == {"a1": 2, "a2": 2}
    assert not any(each.standby or each.warmup or each.rejoin_ms for each in given.values())
    assert "admin.fetch_available_latest_offsets" not in group.script.calls


def test_a_task_moves_between_threads_of_a_directory_without_a_warm_up() -> None:
    group = Group()
    group.join("a1", directory="a")
    group.rebalance()
    group.join("a2", directory="a")
    moving = group.rebalance()
    assert len(moving["a1"].revoked) == 2
    assert moving["a2"].warmup == ()
    assert active(group.rebalance()) == {"a1": 2, "a2": 2}


@pytest.mark.parametrize(
    "error", [OutcomeUnknown("no answer"), AuthorizationError("Describe", "topic", "t")]
)
def test_tasks_stay_where_they_are_if_nobody_knows_the_ends_of_changelogs(
    error: Exception,
) -> None:
    group = Group()
    group.join("a")
    group.rebalance()
    group.join("b", offsets=dict.fromkeys(TASKS, LOG_SIZE))
    group.script.fail("admin.fetch_available_latest_offsets", error)
    given = group.rebalance()
    assert active(given) == {"a": 4, "b": 0}
    assert sum(each.rejoin_ms > 0 for each in given.values()) == 1
    assert group.script.calls.count("admin.fetch_available_latest_offsets") == 1
    assert len(group.rebalance()["a"].revoked) == 2  # known again


def test_a_group_probes_while_nobody_knows_the_ends_of_changelogs() -> None:
    group = Group()
    group.join("a", tasks=TASKS[:2], generation=1)
    group.join("b", tasks=TASKS[2:], generation=1)
    group.script.fail("admin.fetch_available_latest_offsets", OutcomeUnknown("no answer"))
    given = group.rebalance()
    assert active(given) == {"a": 2, "b": 2}
    assert sum(each.rejoin_ms > 0 for each in given.values()) == 1
    assert not any(each.rejoin_ms for each in group.rebalance().values())


def leave_leaderless(monkeypatch: pytest.MonkeyPatch, group: Group, *partitions: Partition) -> None:
    """Let the ends of these partitions be unknown, as they have no leader."""
    fetch = group.admin.fetch_available_latest_offsets

    def fetch_known(asked: Sequence[Partition], timeout_s: float) -> dict[Partition, int]:
        ends = fetch(asked, timeout_s)
        return {each: end for each, end in ends.items() if each not in partitions}

    monkeypatch.setattr(group.admin, "fetch_available_latest_offsets", fetch_known)


def test_one_changelog_without_a_leader_holds_back_no_other_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = Group()
    group.join("a")
    group.rebalance()
    group.join("b", offsets=dict.fromkeys(TASKS, LOG_SIZE))
    leave_leaderless(monkeypatch, group, Partition("a-of-x-changelog", 0))
    given = group.rebalance()
    assert len(given["a"].revoked) == 2, "the copies of the other tasks are known to be up to date"
    assert TASKS[0] in given["a"].tasks, "only who runs it is known to have its state"
    moved = group.rebalance()
    assert active(moved) == {"a": 2, "b": 2}
    assert sum(each.rejoin_ms > 0 for each in moved.values()) == 1
    monkeypatch.undo()
    assert not any(each.rejoin_ms for each in group.rebalance().values())


def test_a_task_that_nobody_runs_goes_to_its_furthest_copy_while_its_changelog_has_no_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = Group()
    group.join("a", tasks=TASKS[1:2], generation=1)
    group.join("b", tasks=TASKS[2:], generation=1, offsets={TASKS[0]: 90})
    leave_leaderless(monkeypatch, group, Partition("a-of-x-changelog", 0))
    assert TASKS[0] in group.rebalance()["b"].tasks


def test_standbys_stay_with_the_members_that_run_them() -> None:
    group = Group(num_standby_replicas=1)
    runs = {"a": TASKS[:2], "b": TASKS[2:], "c": ()}
    follows = {"a": (TASKS[3],), "b": (TASKS[1],), "c": (TASKS[0], TASKS[2])}
    for member, tasks in runs.items():
        copies = dict.fromkeys(TASKS, LOG_SIZE) | dict.fromkeys(tasks, RUNNING_OFFSET)
        group.join(member, tasks=tasks, generation=1, standby=follows[member], offsets=copies)
    given = group.rebalance()
    for member, each in given.items():
        kept = {*each.standby} & {*follows[member]}
        assert len(kept) == min(len(each.standby), len(follows[member])), member


def test_a_changelog_that_was_just_created_holds_nothing_back() -> None:
    group = Group()
    group.kafka.delete("a-of-x-changelog")
    group.join("a")
    group.join("b")
    given = group.rebalance()
    assert active(given) == {"a": 2, "b": 2}
    assert not any(each.rejoin_ms for each in given.values())


def test_each_version_of_the_topology_has_its_own_task_numbers() -> None:
    group = Group("x", "y", num_standby_replicas=1)
    group.join("a", "x", "y")
    group.join("b", "y", "x")
    given = group.rebalance()
    names = {"a": {"x": "0", "y": "1"}, "b": {"x": "1", "y": "0"}}
    for member, each in given.items():
        assert set(each.tasks) == {f"{names[member][topic]}_{n}" for topic, n in each.partitions}
        assert set(each.standby) == {f"{names[member][topic]}_{n}" for topic, n in each.following}
    assert len(given["a"].tasks) == len(given["a"].standby) == PARTITION_COUNT
    for member, each in given.items():
        group.restore(member, *each.standby)
    again = group.rebalance()
    assert {m: (each.tasks, each.standby) for m, each in again.items()} == {
        m: (each.tasks, each.standby) for m, each in given.items()
    }


def test_the_state_of_another_version_is_known_by_its_own_task_numbers() -> None:
    group = Group("x", "y")
    group.join("a", "x", "y", tasks=(*TASKS, *(f"1_{n}" for n in range(4))), generation=1)
    group.join("b", "y", "x", offsets=dict.fromkeys(TASKS, LOG_SIZE))
    group.rebalance()
    given = group.rebalance()
    assert {topic for topic, _ in given["b"].partitions} == {"y"}


def test_a_member_that_claims_a_task_it_has_lost_has_no_state_of_it() -> None:
    group = Group()
    group.join("a", tasks=TASKS, generation=7, offsets=dict.fromkeys(TASKS, RUNNING_OFFSET))
    group.join("b", tasks=TASKS, generation=5, offsets=dict.fromkeys(TASKS, RUNNING_OFFSET))
    given = group.rebalance()
    assert active(given) == {"a": 4, "b": 0}
    assert len(given["b"].warmup) == 2


def test_standbys_differ_in_their_tags_from_what_runs() -> None:
    group = Group(
        num_standby_replicas=1, client_tags={"zone": "1"}, rack_aware_assignment_tags=["zone"]
    )
    zones = {"a": "1", "b": "1", "c": "2", "d": "2"}
    for member, zone in zones.items():
        group.join(member, tags={"zone": zone})
    given = group.rebalance()
    for member, each in given.items():
        for task in each.standby:
            (owner,) = (m for m, other in given.items() if task in other.tasks)
            assert zones[owner] != zones[member]
    assert sum(len(each.standby) for each in given.values()) == PARTITION_COUNT


def test_every_member_is_told_which_tasks_run_behind_each_endpoint() -> None:
    group = Group(num_standby_replicas=1)
    group.join("a", endpoint="a:1")
    group.join("b", endpoint="b:1")
    group.join("silent")
    for _ in range(4):
        for member in group.members:
            group.restore(member, *TASKS)
        given = group.rebalance()
    told = [each.endpoints for each in given.values()]
    assert told[0] == told[1] == told[2]
    assert told[0].keys() == {"a:1", "b:1"}
    for member in ("a", "b"):
        tasks = told[0][f"{member}:1"]
        assert set(tasks.active) == {*given[member].tasks, *given[member].revoked}
        assert set(tasks.standby) == {*given[member].standby, *given[member].warmup}


def test_without_endpoints_nothing_is_told() -> None:
    group = Group()
    group.join("a")
    assert not group.rebalance()["a"].endpoints
