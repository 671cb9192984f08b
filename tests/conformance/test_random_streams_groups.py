"""Test that random heartbeats of a streams group get the same answers from each broker.

Six members of three processes, two of them static, join, go on, lose answers, claim epochs and
tasks that aren't theirs, leave and come back, report endpoints, offsets and tags, and commit, while
topics come, grow and go, internal ones as well, and the number of standby tasks changes. After each
call the coordinator's state is fetched. A history is given by its seed.

Endpoints are reported in every other history, in which topics stay as they are: Kafka 4.4 answers
UNKNOWN_SERVER_ERROR to all members of a group that has an endpoint while topics are missing or
wrongly partitioned (NoSuchElementException in EndpointToPartitionsManager); this broker answers
with the status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from itertools import count
from random import Random
from typing import Any, NamedTuple

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.calls import metadata
from tests.conformance.commits import commit
from tests.conformance.group_histories import GroupHistory
from tests.conformance.kept_histories import judge_history
from tests.conformance.streams_members import (
    AWAY,
    JOIN,
    LEAVE,
    ROLES,
    StreamsMember,
    describe,
    encode_tasks,
    internal,
    tasks_of,
    topology,
)
from tests.conformance.wire import Api, Client
from tests.processes import wait_until

STEPS = 90
INSTANCES = (None, None, None, None, "i4", "i5")
PROCESSES = ("p0", "p0", "p1", "p1", "p2", "p2")
MISSING_INTERNAL_TOPICS = 3
GROUP_RESOURCE = 32


class StepKind(StrEnum):
    """Names what happens in a step; all but the last two are calls of a member."""

    BEAT = "beat"
    JOIN = "join"
    LEAVE = "leave"
    COMMIT = "commit"
    STANDBYS = "standbys"
    TOPICS = "topics"


class Step(NamedTuple):
    """Represents a step of a history whose steps are given: details follow from its own seed."""

    kind: StepKind
    member: int
    seed: int


class StreamsHistory(GroupHistory):
    """Represents six members, by index; one that joins as a new process has a new id.

    Topics: two sources, a repartition topic and a changelog, the last two of which the broker is to
    create. `is_for_4_3`: without what Kafka 4.3 refuses (static members, offsets of tasks) or
    answers otherwise (the interval of these offsets); and in two of three seeds with one member, as
    its assignor breaks ties between members otherwise, and without endpoints.
    """

    def __init__(
        self,
        client: Client,
        seed: int,
        group: str,
        names: tuple[str, ...],
        *,
        is_for_4_3: bool = False,
    ) -> None:
        super().__init__(client, seed, group, names)
        self._is_for_4_3 = is_for_4_3
        self._instances = (None,) * len(INSTANCES) if is_for_4_3 else INSTANCES
        is_alone = is_for_4_3 and seed % 3 > 0
        indexes = range(1 if is_alone else len(INSTANCES))
        self._members = [self._member(i, f"m{i}", PROCESSES[i]) for i in indexes]
        self._lives = count(1)
        self._has_endpoints = seed % 2 == 1 and not is_alone
        self._topology = self._make_topology()

    def _make_topology(self, epoch: int = 1) -> dict[str, Any]:
        """Return a topology: two sub-topologies with a repartition topic between, or one."""
        first, second, repartition, changelog = self.names
        sources = self.random.choice([(first,), (first, second)])
        if self._has_endpoints:
            sources = (first,)
        is_copartitioned = len(sources) > 1 and self.random.random() < 0.5
        groups = [{"source_topics": (0, 1)}] if is_copartitioned else []
        partitions = self.random.choice([0, 0, 3])
        reading: dict[str, Any] = {"source_topics": sources, "copartition_groups": groups}
        keeping = {"state_changelog_topics": [internal(changelog, cleanup_policy="compact")]}
        if self.random.random() < 0.3:
            return topology({**reading, **keeping}, epoch=epoch)
        return topology(
            {**reading, "repartition_sink_topics": (repartition,)},
            {"repartition_source_topics": [internal(repartition, partitions)], **keeping},
            epoch=epoch,
        )

    def _member(self, index: int, member_id: str, process_id: str) -> StreamsMember:
        return StreamsMember(self.client, self.group, self._instances[index], process_id, member_id)

    def run(self) -> None:
        self._change_standby_count(self.random.choice([0, 1, 1]))
        self.create_first_topics()
        for _ in range(STEPS):
            [what] = self.random.choices(
                [self._beat, self._join, self._leave, self._commit, None],
                [60, 16, 8, 8, 3],
            )
            if what is None and self._has_endpoints:
                continue
            if what is None:
                if self.random.random() < 0.3:
                    self._change_standby_count(self.random.randint(0, 2))
                self.change_topics()
            else:
                what(self.random.randrange(len(self._members)))

    def run_steps(self, steps: Iterable[Step]) -> None:
        """Run given steps, any of which may be left out while the others stay as they are."""
        self._change_standby_count(self.random.choice([0, 1, 1]))
        self.create_first_topics()
        for step in steps:
            self.random = Random(step.seed)
            index = step.member % len(self._members)
            match step.kind:
                case StepKind.BEAT:
                    self._beat(index)
                case StepKind.JOIN:
                    self._join(index)
                case StepKind.LEAVE:
                    self._leave(index)
                case StepKind.COMMIT:
                    self._commit(index)
                case StepKind.STANDBYS if not self._has_endpoints:
                    self._change_standby_count(self.random.randint(0, 2))
                    self.change_topics()
                case StepKind.TOPICS if not self._has_endpoints:
                    self.change_topics()
                case _:  # topics stay as they are beside endpoints
                    pass

    def _change_standby_count(self, standby_count: int) -> None:
        """Alter the group's setting; who changes topics afterwards waits until it is heard of."""
        change = {
            "name": "streams.num.standby.replicas",
            "config_operation": 0,
            "value": str(standby_count),
        }
        resource = {"resource_type": GROUP_RESOURCE, "resource_name": self.group}
        answer = self.client.send(
            Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=[{**resource, "configs": [change]}]
        )
        assert answer.responses[0].error_code == Code.NONE, answer

    # Calls

    def _beat(self, index: int) -> None:
        member = self._members[index]
        fields: dict[str, Any] = {}
        if self._has_endpoints and self.random.random() < 0.1:
            fields["user_endpoint"] = {"host": "h", "port": 7000 + index}
        if self.random.random() < 0.05:
            fields["client_tags"] = [{"key": "zone", "value": self.random.choice("ab")}]
        if self.random.random() < 0.05:
            fields["rack_id"] = self.random.choice("ab")
        if not self._is_for_4_3 and self.random.random() < 0.1:
            offset = {"subtopology_id": "0", "partition": 0, "offset": self.random.randint(0, 9)}
            fields["task_offsets"] = [offset]
        if self.random.random() < 0.02:
            fields["shutdown_application"] = True
        if self._has_endpoints and self.random.random() < 0.1:
            fields["endpoint_information_epoch"] = self.random.randint(0, 3)
        self._send(index, "beat", member_epoch=self._epoch(member), **self._owned(member), **fields)

    def _join(self, index: int) -> None:
        if self.random.random() < 0.3:  # a new process
            life = next(self._lives)
            process_id = f"{PROCESSES[index]}-{life}" if self.random.random() < 0.5 else ""
            self._members[index] = self._member(
                index, f"m{index}-{life}", process_id or PROCESSES[index]
            )
        member = self._members[index]
        member.tasks = {role: set() for role in ROLES}
        fields = member.joining_fields(self._topology)
        if self._has_endpoints and self.random.random() < 0.2:
            fields["user_endpoint"] = {"host": "h", "port": 7000 + index}
        match self.random.choice([*["same"] * 12, "older", "newer", "other"]):
            case "older":
                fields["topology"] = {**self._topology, "epoch": 0}
            case "newer":
                fields["topology"] = {**self._topology, "epoch": 2}
            case "other":
                fields["topology"] = topology({"source_topics": self.names[:1]}, epoch=1)
            case _:
                pass
        self._send(index, "join", **fields)

    def _leave(self, index: int) -> None:
        epoch = AWAY if self._instances[index] and self.random.random() < 0.7 else LEAVE
        self._send(index, "leave", member_epoch=epoch)

    def _commit(self, index: int) -> None:
        member = self._members[index]
        name = self.random.choice(sorted(self.partitions, key=self.names.index))
        partition = self.random.randrange(self.partitions[name])
        codes = commit(
            self.client,
            9,
            self.group,
            {name: [partition]},
            generation=self._epoch(member),
            member_id=member.member_id,
        )
        [code] = codes.values()
        self.add_line(f"{member.member_id} commit {self.names.index(name)}-{partition}", code)

    # Fields of a member

    def _epoch(self, member: StreamsMember) -> int:
        """Return an epoch, mostly the last one of the member's responses, never 0."""
        return max(1, member.epoch + self.random.choice([0] * 10 + [-1, 1]))

    def _owned(self, member: StreamsMember) -> dict[str, Any]:
        """Return the fields of owned tasks: mostly those that it was told, or none, or others."""
        match self.random.choice(["all", "all", "all", "all", "silent", "none", "more"]):
            case "all":
                return encode_tasks(member.tasks)
            case "silent":
                return {}
            case "none":
                return encode_tasks({})
            case _:
                role = self.random.choice(ROLES[:2])
                others = {(each, self.random.randrange(4)) for each in "012"}
                return encode_tasks({**member.tasks, role: member.tasks[role] | others})

    def _send(self, index: int, what: str, **fields: Any) -> None:
        member = self._members[index]
        answer = member.send(**fields)
        told = "" if answer.active_tasks is None else _name_tasks(tasks_of(answer))
        if answer.error_code == Code.NONE and self.random.random() < 0.9:  # else it is lost
            member.apply(answer)
            member.epoch = max(0, answer.member_epoch)
        elif answer.error_code in (Code.FENCED_MEMBER_EPOCH, Code.UNKNOWN_MEMBER_ID):
            member.tasks = {role: set() for role in ROLES}
        statuses = [
            f"{status.status_code} {self._rename(status.status_detail)}"
            for status in answer.status or ()
        ]
        endpoints = sorted(
            f"{each.user_endpoint.port}: {self._name_partitions(each.active_partitions)} "
            f"{self._name_partitions(each.standby_partitions)}"
            for each in answer.partitions_by_user_endpoint or ()
        )
        known = None if answer.partitions_by_user_endpoint is None else endpoints
        epoch = fields.get("member_epoch", JOIN)
        self.add_line(
            f"{member.member_id} {what} at {epoch}",
            answer.error_code,
            f"{self._rename(answer.error_message or '')} {answer.member_epoch} {told} {statuses} "
            f"{answer.endpoint_information_epoch} {known} "
            f"{answer.heartbeat_interval} {answer.acceptable_recovery_lag} "
            f"{'' if self._is_for_4_3 else answer.task_offset_interval}",
        )
        if any(each.status_code == MISSING_INTERNAL_TOPICS for each in answer.status or ()):
            self._await_internal_topics()

    def _await_internal_topics(self) -> None:
        """Wait until the broker has created what the topology is missing, and knows of it."""
        wanted = {
            topic["name"]
            for each in self._topology["subtopologies"]
            for field in ("state_changelog_topics", "repartition_source_topics")
            for topic in each.get(field, ())
        }

        def exist() -> bool:
            found = metadata(self.client, *wanted, version=12).topics
            for topic in found:
                if topic.error_code == Code.NONE and topic.partitions:
                    self.partitions[topic.name] = len(topic.partitions)
                    self.ids[topic.topic_id] = topic.name
            return all(topic.error_code == Code.NONE and topic.partitions for topic in found)

        wait_until(exist, what="the broker has not created an internal topic")
        self._await_topics()

    # Results

    def _rename(self, text: str) -> str:
        """Return a text with names that are the same for every broker and every run."""
        for index, name in enumerate(self.names):
            text = text.replace(name, f"T{index}")
        head, colon, listed = text.replace(self.group, "G").partition("are missing: ")
        return head + colon + ", ".join(sorted(listed.split(", ")))

    def _name_partitions(self, partitions: Any) -> str:
        return self.named((each.topic, list(each.partitions)) for each in partitions)

    def add_line(self, what: str, code: Any, answer: str = "") -> None:
        """Add a line with a call, its response, and the coordinator's state afterwards."""
        [found] = describe(self.client, self.group)
        members = "".join(
            f"\n    {each.member_id} {each.instance_id} {each.rack_id} {each.process_id} "
            f"{each.topology_epoch} at {each.member_epoch}: "
            f"{_name_tasks(tasks_of(each.assignment))} of "
            f"{_name_tasks(tasks_of(each.target_assignment))} "
            f"{[(tag.key, tag.value) for tag in each.client_tags]} "
            f"{each.user_endpoint and each.user_endpoint.port} "
            f"{[each.offset for each in each.task_offsets]}"
            for each in sorted(found.members, key=lambda each: str(each.member_id))
        )
        topics = [] if found.topology is None else found.topology.subtopologies or ()
        counts = [
            (topic.partitions, [(pair.key, pair.value) for pair in topic.topic_configs])
            for each in topics
            for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
        ]
        # Kafka 4.3 does not raise the epoch of the target when the last member leaves. When an idle
        # group's topology is compared with changed topics depends on what else is written there.
        is_told = not self._is_for_4_3 or found.group_state != "Empty"
        self.lines.append(
            f"{what}: {Code(code).name} {answer}; {found.group_state} {found.group_epoch} "
            f"{found.assignment_epoch if is_told else ''} {counts if is_told else ''}{members}"
        )


def _name_tasks(tasks: dict[str, set[tuple[str, int]]]) -> str:
    return " ".join(
        f"{role[0]}[{','.join(f'{each}_{partition}' for each, partition in sorted(tasks[role]))}]"
        for role in ROLES
        if tasks[role]
    )


def test_a_random_streams_history_has_the_same_answers_from_each_broker(
    request: pytest.FixtureRequest,
    broker: Broker,
    connect: Callable[[], Client],
    unique: Callable[[str], str],
    group: str,
    seed: int,
) -> None:
    names = (unique("a"), unique("b"), unique("r"), unique("c"))
    history = StreamsHistory(connect(), seed, group, names)
    history.run()
    judge_history(request.config, broker, "streams-groups", seed, history.lines)
