"""Random heartbeats of a consumer group, the same for every broker, and the same answers from each.

Five members, two of them static, join, go on, lose answers, claim epochs and partitions that aren't
theirs, leave and come back, subscribe to other topics and commit, while topics come, grow and go.
After each call the coordinator is asked what it knows. A history is told by its seed.
`--histories=N` runs more of them.

The assignor is `range`, which leaves nothing to the order of a hash map. Nobody joins without any
topic: Kafka 4.3 takes its group for one whose members all have the same topics then, if its epoch
is above the target's already, and has `range` give the newcomer partitions that it never gets.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from coordinator.shard.placement import shard_of
from tests.brokers import SETTINGS, Broker
from tests.conformance.calls import create_topic, topic_id
from tests.conformance.commits import commit
from tests.conformance.consumers import AWAY, JOIN, LEAVE, Consumer, describe, given
from tests.conformance.wire import Api, Client
from tests.processes import wait_until

STEPS = 80
INSTANCES = (None, None, None, "i3", "i4")
_TOLD: dict[int, list[str]] = {}  # by seed, what the first broker answered


class History:
    """One seed's calls, and a line for each with what came of it."""

    def __init__(self, client: Client, seed: int, group: str, names: tuple[str, ...]) -> None:
        self.client = client
        self.group = group
        self.lines: list[str] = []
        self._rng = random.Random(seed)
        self._names = names
        self._partitions: dict[str, int] = {}
        self._ids: dict[UUID, str] = {}
        self._members = [self._member(i, f"m{i}") for i in range(len(INSTANCES))]
        self._lives = count(1)
        same = (f"{group}-{i}" for i in count())
        shards = int(SETTINGS["offsets.topic.num.partitions"])
        probe = next(name for name in same if shard_of(name, shards) == shard_of(group, shards))
        self._probe = Consumer(client, probe)

    def _member(self, index: int, member_id: str) -> Consumer:
        return Consumer(self.client, self.group, INSTANCES[index], member_id=member_id)

    def run(self) -> None:
        for name in self._names[:2]:
            self._create(name, self._rng.randint(1, 4))
        self._probe.join(*self._names)
        self._await_topics()
        for _ in range(STEPS):
            what = self._rng.choices(
                [self._beat, self._join, self._leave, self._subscribe, self._commit, self._topics],
                [50, 14, 8, 10, 10, 3],
            )
            what[0](self._rng.randrange(len(self._members)))

    # Calls

    def _beat(self, index: int) -> None:
        member = self._members[index]
        self._send(index, "beat", member_epoch=self._epoch(member), **self._owned(member))

    def _join(self, index: int) -> None:
        if self._rng.random() < 0.3:  # a new process
            member_id = f"m{index}-{next(self._lives)}"
            self._members[index] = self._member(index, member_id)
        self._members[index].assigned = {}
        fields = {
            "member_epoch": JOIN,
            "rebalance_timeout": 60_000,
            "subscribed_topic_names": self._some_topics(at_least=1),
            "server_assignor": "range",
            "topic_partitions": (),
        }
        self._send(index, "join", **fields)

    def _leave(self, index: int) -> None:
        epoch = AWAY if INSTANCES[index] and self._rng.random() < 0.7 else LEAVE
        self._send(index, "leave", member_epoch=epoch)

    def _subscribe(self, index: int) -> None:
        member = self._members[index]
        epoch = self._epoch(member)
        fields: dict[str, Any] = {"subscribed_topic_names": self._some_topics(epoch == JOIN)}
        if self._rng.random() < 0.3:
            fields["rebalance_timeout"] = 50_000
        if self._rng.random() < 0.3:
            fields["rack_id"] = self._rng.choice("ab")
        self._send(index, "subscribe", member_epoch=epoch, **fields, **self._owned(member))

    def _commit(self, index: int) -> None:
        member = self._members[index]
        name = self._rng.choice(list(self._partitions))
        partition = self._rng.randrange(self._partitions[name])
        codes = commit(
            self.client,
            9,
            self.group,
            {name: [partition]},
            generation=self._epoch(member),
            member_id=member.member_id,
        )
        [code] = codes.values()
        self._tell(f"{member.member_id} commit {self._names.index(name)}-{partition}", code)

    def _topics(self, _: int) -> None:
        name = self._rng.choice(self._names)
        partitions = self._partitions.get(name)
        if partitions is None:
            self._create(name, self._rng.randint(1, 4))
        elif self._rng.random() < 0.5:
            self._partitions[name] = partitions + 1
            topics = [{"name": name, "count": partitions + 1, "assignments": None}]
            fields = {"topics": topics, "timeout": 10_000, "validate_only": False}
            self.client.send(Api.CREATE_PARTITIONS, 2, **fields)
        elif len(self._partitions) > 1:
            del self._partitions[name]
            self.client.send(Api.DELETE_TOPICS, 4, topic_names=[name], timeout=10_000)
        self._await_topics()
        self._tell(f"topics {self._named(self._partitions.items())}", Code.NONE)

    def _create(self, name: str, partitions: int) -> None:
        create_topic(self.client, name, partitions)
        self._partitions[name] = partitions
        self._ids[topic_id(self.client, name)] = name

    def _await_topics(self) -> None:
        """Real Kafka's coordinator hears of topics a moment later: another group is asked."""

        def has_heard() -> bool:
            self._probe.acknowledge()
            known = {self._ids[each]: len(found) for each, found in self._probe.assigned.items()}
            return known == self._partitions

        wait_until(has_heard, timeout_s=10, what="the coordinator has not heard of a topic")

    # What a member says

    def _epoch(self, member: Consumer) -> int:
        """Mostly the one that it was told last."""
        return max(0, member.epoch + self._rng.choice([0] * 8 + [-1, 1]))

    def _owned(self, member: Consumer) -> dict[str, Any]:
        """Mostly what it is to have; or nothing new, less, or more."""
        match self._rng.choice(["all", "all", "all", "silent", "none", "more"]):
            case "all":
                owned = member.assigned
            case "silent":
                return {}
            case "none":
                owned = {}
            case _:
                everything = {i: n for i, n in self._ids.items() if n in self._partitions}
                owned = {each: set(range(self._partitions[n])) for each, n in everything.items()}
        return {"topic_partitions": given(owned)}

    def _some_topics(self, at_least: int = 0) -> list[str]:
        return self._rng.sample(self._names, self._rng.randint(at_least, len(self._names)))

    def _send(self, index: int, what: str, **fields: Any) -> None:
        member = self._members[index]
        answer = member.send(**fields)
        told = "" if answer.assignment is None else self._assignment(answer.assignment)
        if answer.error_code == Code.NONE and self._rng.random() < 0.85:  # else it is lost
            member.epoch = max(0, answer.member_epoch)
            if answer.assignment is not None:
                member.assigned = {
                    each.topic_id: set(each.partitions)
                    for each in answer.assignment.topic_partitions
                }
        elif answer.error_code in (Code.FENCED_MEMBER_EPOCH, Code.UNKNOWN_MEMBER_ID):
            member.assigned = {}
        message = (answer.error_message or "").replace(self.group, "G")
        said = f"{member.member_id} {what} at {fields['member_epoch']}"
        self._tell(said, answer.error_code, f"{message} {answer.member_epoch} {told}")

    # What came of it

    def _tell(self, what: str, code: Any, answer: str = "") -> None:
        found = describe(self.client, self.group)
        members = "".join(
            f"\n    {each.member_id} {each.instance_id} {each.rack_id} at {each.member_epoch}: "
            f"{sorted(self._names.index(name) for name in each.subscribed_topic_names)} "
            f"has {self._assignment(each.assignment)} of {self._assignment(each.target_assignment)}"
            for each in sorted(found.members, key=lambda each: each.member_id)
        )
        self.lines.append(
            f"{what}: {Code(code).name} {answer}; {found.group_state} {found.group_epoch} "
            f"{found.assignment_epoch} {found.assignor_name}{members}"
        )

    def _assignment(self, assignment: Any) -> str:
        return self._named(
            (self._ids[topic.topic_id], sorted(topic.partitions))
            for topic in assignment.topic_partitions
        )

    def _named(self, partitions: Iterable[tuple[str, Any]]) -> str:
        return str(sorted((self._names.index(name), found) for name, found in partitions))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--histories")))


def test_a_random_history_has_the_same_answers_from_each_broker(
    broker: Broker,
    connect: Callable[[], Client],
    unique: Callable[[str], str],
    group: str,
    seed: int,
) -> None:
    history = History(connect(), seed, group, (unique("a"), unique("b"), unique("c")))
    history.run()
    told = _TOLD.setdefault(seed, history.lines)
    for step, (one, other) in enumerate(zip(told, history.lines, strict=True)):
        before = "\n".join(history.lines[:step])
        assert other == one, f"{seed=} {step=} of {broker.kind}, after:\n{before}"
