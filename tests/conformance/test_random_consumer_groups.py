"""Test that random heartbeats of a consumer group get the same answers from each broker.

Five members, two of them static, join, go on, lose answers, claim epochs and partitions that aren't
theirs, leave and come back, subscribe to other topics and commit, while topics come, grow and go.
After each call the coordinator's state is fetched. A history is given by its seed. `--histories=N`
runs more of them.

The assignor is `range`, which leaves nothing to the order of a hash map. Nobody joins without any
topic: Kafka 4.3 takes its group for one whose members all have the same topics then, if its epoch
is above the target's already, and has `range` give the newcomer partitions that it never gets.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.commits import commit
from tests.conformance.consumers import AWAY, JOIN, LEAVE, Consumer, encode_partitions
from tests.conformance.group_histories import GroupHistory
from tests.conformance.kept_histories import judge_history
from tests.conformance.wire import Client

STEPS = 80
INSTANCES = (None, None, None, "i3", "i4")


class History(GroupHistory):
    """Represents five members, by index; one that joins as a new process has a new id."""

    def __init__(self, client: Client, seed: int, group: str, names: tuple[str, ...]) -> None:
        super().__init__(client, seed, group, names)
        self._members = [self._member(i, f"m{i}") for i in range(len(INSTANCES))]
        self._lives = count(1)

    def _member(self, index: int, member_id: str) -> Consumer:
        return Consumer(self.client, self.group, INSTANCES[index], member_id=member_id)

    def run(self) -> None:
        self.create_first_topics()
        for _ in range(STEPS):
            [what] = self.random.choices(
                [self._beat, self._join, self._leave, self._subscribe, self._commit, None],
                [50, 14, 8, 10, 10, 3],
            )
            if what is None:
                self.change_topics()
            else:
                what(self.random.randrange(len(self._members)))

    # Calls

    def _beat(self, index: int) -> None:
        member = self._members[index]
        self._send(index, "beat", member_epoch=self._epoch(member), **self._owned(member))

    def _join(self, index: int) -> None:
        if self.random.random() < 0.3:  # a new process
            member_id = f"m{index}-{next(self._lives)}"
            self._members[index] = self._member(index, member_id)
        self._members[index].assigned = {}
        fields = {
            "member_epoch": JOIN,
            "rebalance_timeout": 60_000,
            "subscribed_topic_names": self.some_topics(at_least=1),
            "server_assignor": "range",
            "topic_partitions": (),
        }
        self._send(index, "join", **fields)

    def _leave(self, index: int) -> None:
        epoch = AWAY if INSTANCES[index] and self.random.random() < 0.7 else LEAVE
        self._send(index, "leave", member_epoch=epoch)

    def _subscribe(self, index: int) -> None:
        member = self._members[index]
        epoch = self._epoch(member)
        fields: dict[str, Any] = {"subscribed_topic_names": self.some_topics(epoch == JOIN)}
        if self.random.random() < 0.3:
            fields["rebalance_timeout"] = 50_000
        if self.random.random() < 0.3:
            fields["rack_id"] = self.random.choice("ab")
        self._send(index, "subscribe", member_epoch=epoch, **fields, **self._owned(member))

    def _commit(self, index: int) -> None:
        member = self._members[index]
        name = self.random.choice(list(self.partitions))
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

    def _epoch(self, member: Consumer) -> int:
        """Return an epoch, mostly the last one of the member's responses."""
        return max(0, member.epoch + self.random.choice([0] * 8 + [-1, 1]))

    def _owned(self, member: Consumer) -> dict[str, Any]:
        """Return the fields of owned partitions: mostly the assigned ones, or none, or others."""
        match self.random.choice(["all", "all", "all", "silent", "none", "more"]):
            case "all":
                owned = member.assigned
            case "silent":
                return {}
            case "none":
                owned = {}
            case _:
                everything = {i: n for i, n in self.ids.items() if n in self.partitions}
                owned = {each: set(range(self.partitions[n])) for each, n in everything.items()}
        return {"topic_partitions": encode_partitions(owned)}

    def _send(self, index: int, what: str, **fields: Any) -> None:
        member = self._members[index]
        answer = member.send(**fields)
        told = "" if answer.assignment is None else self.assignment(answer.assignment)
        if answer.error_code == Code.NONE and self.random.random() < 0.85:  # else it is lost
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
        self.add_line(said, answer.error_code, f"{message} {answer.member_epoch} {told}")


def test_a_random_history_has_the_same_answers_from_each_broker(
    request: pytest.FixtureRequest,
    broker: Broker,
    connect: Callable[[], Client],
    unique: Callable[[str], str],
    group: str,
    seed: int,
) -> None:
    history = History(connect(), seed, group, (unique("a"), unique("b"), unique("c")))
    history.run()
    judge_history(request.config, broker, "consumer-groups", seed, history.lines)
