"""Test that random calls of members of both protocols get the same answers from each broker.

Two members speak the consumer protocol, of which one stays, so that the group is never converted
back. Three static ones speak the classic protocol, or one after the other as they come back: they
join, sync and heartbeat with generations and partitions that are theirs or not, leave, and are
replaced. After each call the coordinator's state is fetched. See `test_random_consumer_groups`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.consumers import (
    AWAY,
    JOIN,
    LEAVE,
    Consumer,
    encode_partitions,
    partitions_of,
)
from tests.conformance.group_histories import GroupHistory
from tests.conformance.kept_histories import judge_history
from tests.conformance.migrants import Migrant, Partitions, assigned
from tests.conformance.wire import Client

STEPS = 80
STATIC = ("s0", "s1", "s2")


class History(GroupHistory):
    """Represents calls whose broker-made ids are named in the order in which they come up."""

    def __init__(self, client: Client, seed: int, group: str, names: tuple[str, ...]) -> None:
        super().__init__(client, seed, group, names)
        self._aliases = {"c0": "c0", "c1": "c1", "": ""}
        self._lives = 0
        self._consumers = [Consumer(client, group, member_id=each) for each in ("c0", "c1")]
        self._static: list[Migrant | Consumer] = [
            Migrant(client, group, each, topics=names[:1]) for each in STATIC
        ]

    def run(self) -> None:
        self.create_first_topics()
        self._join_consumer(self._consumers[0])
        for _ in range(STEPS):
            [what] = self.random.choices(["consumer", "static", "topics"], [45, 55, 3])
            match what:
                case "consumer":
                    self._consumer(self.random.choice(self._consumers))
                case "static":
                    self._one_of_both(self.random.randrange(len(STATIC)))
                case _:
                    self.change_topics()

    def alias(self, member_id: str) -> str:
        return self._aliases.setdefault(member_id, f"x{len(self._aliases)}")

    # Members that speak the consumer protocol

    def _consumer(self, member: Consumer) -> None:
        [what] = self.random.choices(["beat", "join", "leave", "subscribe"], [60, 15, 10, 15])
        stays = member is self._consumers[0]
        match what:
            case "leave" if not stays:
                epoch = AWAY if member.instance_id and self.random.random() < 0.5 else LEAVE
                self._send(member, "leave", member_epoch=epoch)
            case "join" if not stays or member.epoch == 0:
                self._join_consumer(member)
            case "subscribe":
                self._send(
                    member,
                    "subscribe",
                    subscribed_topic_names=self.some_topics(1),
                    topic_partitions=encode_partitions(member.assigned),
                )
            case _:
                epoch = member.epoch
                if not stays:
                    epoch = max(1, epoch + self.random.choice([0] * 8 + [-1, 1]))
                owned: list[Any] | None = encode_partitions(member.assigned)
                if self.random.random() < 0.3:
                    owned = None
                self._send(member, "beat", member_epoch=epoch, topic_partitions=owned)

    def _join_consumer(self, member: Consumer) -> None:
        member.assigned = {}
        self._send(
            member,
            "join",
            member_epoch=JOIN,
            rebalance_timeout=60_000,
            subscribed_topic_names=self.some_topics(1),
            server_assignor="range",
            topic_partitions=(),
        )

    def _send(self, member: Consumer, what: str, **fields: Any) -> None:
        if member.epoch <= 0 and "member_epoch" not in fields:
            fields["member_epoch"] = 1
        answer = member.send(**fields)
        told = "" if answer.assignment is None else self.assignment(answer.assignment)
        if answer.error_code == Code.NONE:
            member.epoch = max(0, answer.member_epoch)
            if answer.assignment is not None:
                member.assigned = partitions_of(answer.assignment)
        message = answer.error_message or ""
        for known, alias in self._aliases.items():
            message = message.replace(known, alias) if known else message
        message = message.replace(self.group, "G")
        said = f"{self.alias(member.member_id)} {what} at {fields.get('member_epoch')}"
        self.add_line(said, answer.error_code, f"{message} {answer.member_epoch} {told}")

    # Members that may speak either

    def _one_of_both(self, index: int) -> None:
        member = self._static[index]
        if self.random.random() < 0.08:
            self._static[index] = self._back(index)
        elif isinstance(member, Consumer):
            self._consumer(member)
        else:
            self._classic(member)

    def _back(self, index: int) -> Migrant | Consumer:
        """Join a new process with the same instance id, maybe by the other protocol; return it."""
        if self.random.random() < 0.5:
            self._lives += 1
            member_id = f"{STATIC[index]}-{self._lives}"
            self._aliases[member_id] = member_id
            consumer = Consumer(self.client, self.group, STATIC[index], member_id=member_id)
            self._join_consumer(consumer)
            return consumer
        version = self.random.randrange(4)
        member = Migrant(self.client, self.group, STATIC[index], version=version)
        self._join_classic(member)
        return member

    def _classic(self, member: Migrant) -> None:
        [what] = self.random.choices(["join", "sync", "beat", "leave"], [25, 35, 35, 5])
        if not member.member_id and self.random.random() < 0.8:
            what = "join"
        generation = member.generation
        if what in ("sync", "beat"):
            member.generation += self.random.choice([0] * 8 + [-1, 1])
        said = f"{self.alias(member.member_id)} {what} at {member.generation}"
        match what:
            case "join":
                self._join_classic(member)
            case "sync":
                answer = member.sync(version=5, protocol_type="consumer", protocol_name="range")
                told = ""
                if answer.error_code == Code.NONE:
                    version, member.has = assigned(answer.assignment)
                    told = f"v{version} {self.named(member.has.items())}"
                self.add_line(said, answer.error_code, told)
            case "beat":
                self.add_line(said, member.heartbeat())
            case _:
                self.add_line(said, member.leave(5))
        if what in ("sync", "beat"):
            member.generation = generation

    def _join_classic(self, member: Migrant) -> None:
        member.topics = tuple(self.some_topics(1))
        has = member.has
        member.has = self._claimed(has)
        answer = self.client.receive(member.post_join(9))
        member.has = has
        if answer.error_code == Code.NONE:
            member.member_id, member.generation = answer.member_id, answer.generation_id
        self.add_line(
            f"{member.instance_id} join",
            answer.error_code,
            f"{self.alias(answer.member_id)} {answer.generation_id} {answer.protocol_type} "
            f"{answer.protocol_name} {self.alias(answer.leader)} {len(answer.members)}",
        )

    def _claimed(self, has: Partitions) -> Partitions:
        """Return claimed partitions: mostly the owned ones, or none, or all."""
        match self.random.choice(["has", "has", "nothing", "everything"]):
            case "nothing":
                return {}
            case "everything":
                return {name: list(range(count)) for name, count in self.partitions.items()}
            case _:
                return has


def test_a_random_history_of_both_protocols_has_the_same_answers_from_each_broker(
    request: pytest.FixtureRequest,
    broker: Broker,
    connect: Callable[[], Client],
    unique: Callable[[str], str],
    group: str,
    seed: int,
) -> None:
    history = History(connect(), seed, group, (unique("a"), unique("b"), unique("c")))
    history.run()
    judge_history(request.config, broker, "mixed-groups", seed, history.lines)
