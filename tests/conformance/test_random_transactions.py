"""Test that random transaction calls get the same answers from each broker.

Two transactional ids, two producers of each, versions 1 and 2 of transactions mixed as they come:
commits, aborts, inits with the right epoch, a stale one or none, writes and offsets. After each
call the coordinator's state is fetched; nothing is called while a transaction is completed. A
history is given by its seed. `--histories=N` runs more of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.kept_histories import judge_history
from tests.conformance.producers import Producer, init_producer_id
from tests.conformance.transactions import describe
from tests.conformance.wire import Client
from tests.processes import wait_until

STEPS = 60


class History:
    """Represents one seed's calls, with a line for each and its result."""

    def __init__(self, client: Client, seed: int, names: tuple[str, str], topic: str) -> None:
        self.client = client
        self.topic = topic
        self.lines: list[str] = []
        self._rng = random.Random(seed)
        self._names = names
        self._producer_ids: dict[int, int] = {}  # by value, in the order in which they came up
        self._producers = {
            (name, turn): Producer(client, name, -1, -1) for name in names for turn in (0, 1)
        }

    def run(self) -> None:
        for name in self._names:
            self._init(self._producers[name, 0], version=4, producer_id=-1, epoch=-1)
        for _ in range(STEPS):
            producer = self._rng.choice(list(self._producers.values()))
            if producer.producer_id < 0:
                self._init(producer, version=self._rng.randrange(6), producer_id=-1, epoch=-1)
            else:
                self._call(producer)

    def _call(self, producer: Producer) -> None:
        rng = self._rng
        match rng.choice(["init", "bump", "add", "write", "write", "offsets", "end", "end"]):
            case "init":
                self._init(producer, version=rng.randrange(6), producer_id=-1, epoch=-1)
            case "bump":
                epoch = max(0, producer.epoch + rng.choice([0, 0, 0, -1, 1]))
                version = rng.choice([3, 4, 5])
                self._init(producer, version=version, producer_id=producer.producer_id, epoch=epoch)
            case "add":
                version = rng.randrange(4)
                codes = producer.add_partitions(self.topic, version=version)
                self._add_line(producer, f"add v{version}", codes[self.topic])
            case "write":
                version = rng.choice([10, 11, 12, 12])
                code = producer.write(self.topic, b"x", version=version).error_code
                self._add_line(producer, f"write v{version}", code)
            case "offsets":
                version = rng.choice([3, 4, 5])
                if version < 5 and rng.random() < 0.7:
                    self._add_line(
                        producer, "add offsets", producer.add_offsets("g", version=version)
                    )
                code = producer.stage_offset("g", self.topic, 5, version=version)
                self._add_line(producer, f"offsets v{version}", code)
            case "end":
                version = rng.choice([0, 1, 2, 3, 4, 5, 5, 5, 5])
                committed = rng.random() < 0.6
                code = producer.end(committed, version=version)
                self._add_line(producer, f"end v{version} {committed=}", code)

    def _init(self, producer: Producer, *, version: int, producer_id: int, epoch: int) -> None:
        answer = init_producer_id(
            self.client,
            producer.transactional_id,
            producer_id=producer_id,
            epoch=epoch,
            version=version,
        )
        if answer.error_code == Code.NONE:
            producer.take(answer)
        self._add_line(producer, f"init v{version} {epoch=}", answer.error_code)

    def _add_line(self, producer: Producer, what: str, code: Any) -> None:
        name = producer.transactional_id
        wait_until(
            lambda: not describe(self.client, name).state.startswith("Prepare"),
            what=f"{name} isn't completed",
        )
        known = describe(self.client, name)
        self.lines.append(
            f"{self._names.index(name)} {what}: {Code(code).name}, "
            f"producer {self._number(producer.producer_id)}/{producer.epoch}; "
            f"{known.state} of {self._number(known.producer_id)}/{known.epoch}, "
            f"{len(known.partitions)} partitions, {known.started=}"
        )

    def _number(self, producer_id: int) -> int:
        """Number a producer id by its first appearance, as ids differ between brokers."""
        return self._producer_ids.setdefault(producer_id, len(self._producer_ids))


def test_a_random_history_has_the_same_answers_from_each_broker(
    request: pytest.FixtureRequest,
    broker: Broker,
    connect: Callable[[], Client],
    unique: Callable[[str], str],
    seed: int,
) -> None:
    client = connect()
    topic = unique("topic")
    create_topic(client, topic)
    history = History(client, seed, (unique("txn"), unique("txn")), topic)
    history.run()
    judge_history(request.config, broker, "transactions", seed, history.lines)
