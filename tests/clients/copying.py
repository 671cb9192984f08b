"""Define the work that each language's client does, and check its result whatever was killed.

A program copies a topic of two partitions to another, transaction by transaction, each with its
input offsets; some it aborts. The broker is killed with -9 in the middle and started again. Once
the committed offsets have reached the end, nothing more can come: then no transaction is open, and
each record is in the output as read_committed reads it, once, and in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from coordinator.errors import Code
from tests.answers import codes
from tests.brokers import Broker
from tests.clients.programs import Program
from tests.conformance.calls import create_topic
from tests.conformance.transactions import describe
from tests.conformance.wire import Api, Client
from tests.processes import HANG_LIMIT_S
from tests.reading import final_records, records

PARTITIONS = 2
RECORDS = 4_000
# By then about a third, and two thirds of the records are copied, at 40 in a transaction.
KILLS_AFTER = (25, 55)
# States of a transactional id: nothing more is written in its transaction, if it has one.
NOT_OPEN = frozenset({"Empty", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"})


@dataclass(frozen=True, slots=True)
class Copying:
    """Holds the names of the topics, group and transactional id of one copy."""

    input: str
    output: str
    group: str
    transactional_id: str
    records: int = RECORDS

    @property
    def arguments(self) -> list[str]:
        """Return the arguments that every program takes behind the broker's address."""
        return [self.input, self.output, self.group, self.transactional_id]


def prepare(broker: Broker, unique: Callable[[str], str], records: int = RECORDS) -> Copying:
    """Create the topics of a copy.

    The input has the numbers from 0, in turns in each of its partitions.
    """
    copying = Copying(unique("input"), unique("output"), unique("group"), unique("id"), records)
    with Client(broker.bootstrap_servers) as client:
        for name in (copying.input, copying.output):
            create_topic(client, name, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(records):
        producer.produce(copying.input, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(HANG_LIMIT_S) == 0
    return copying


def copy_under_kills(broker: Broker, command: Sequence[str], copying: Copying) -> None:
    """Run the program, kill an embedded broker under it, and look at what it has left."""
    kills = KILLS_AFTER if broker.kind == "embedded" else ()  # docs/decisions/0035
    program = Program("copy", [*command, broker.bootstrap_servers, *copying.arguments])
    try:
        for transactions in kills:
            program.wait_for("committed", transactions)
            broker.kill()
            broker.restart()
        program.wait_until(
            lambda: has_reached_the_end(broker, copying),
            what=lambda: describe_progress(broker, copying),
        )
        said = program.log_tail()
        check_no_transaction(broker, copying)
    finally:
        program.close()
    check_output(broker, copying, said)


def describe_progress(broker: Broker, copying: Copying) -> str:
    """Return what the coordinators say of the copier: its offsets, and its transaction."""
    with Client(broker.bootstrap_servers) as client:
        offsets = ask_for_offsets(client, copying.group, copying.input, PARTITIONS)
        return f"{offsets}\n{describe(client, copying.transactional_id)}"


def has_reached_the_end(broker: Broker, copying: Copying) -> bool:
    """Tell whether the group has committed all of the input, and no offset is pending."""
    found = committed_offsets(broker, copying.group, copying.input, PARTITIONS)
    return found == [copying.records // PARTITIONS] * PARTITIONS


def check_no_transaction(broker: Broker, copying: Copying) -> None:
    """Check that the copier has no transaction open, in which there would be more than its input.

    The markers of its last transaction may be on their way.
    """
    with Client(broker.bootstrap_servers) as client:
        state = describe(client, copying.transactional_id).state
    assert state in NOT_OPEN, f"the transaction of {copying.transactional_id}: {state}"


def check_output(broker: Broker, copying: Copying, said: str = "") -> None:
    """Check that each record is in the output once and in order; `said` is told if it is not."""
    for partition, values in enumerate(read_committed(broker, copying.output)):
        expected = [
            str(number).encode() for number in range(partition, copying.records, PARTITIONS)
        ]
        if values != expected:
            hidden = find_hidden(broker, copying, set(expected) - set(values))
            raise AssertionError(f"{different(values, expected)}; {hidden}\n{said}")


def find_hidden(broker: Broker, copying: Copying, lost: set[bytes]) -> str:
    """Return which offsets of the output hold values that a reader of what is committed misses."""
    servers, topic = broker.bootstrap_servers, copying.output
    found = records(servers, topic, PARTITIONS, isolation="read_uncommitted")
    hidden = [(each.partition(), each.offset()) for each in found if each.value() in lost]
    return f"the log has {len(hidden)} copies of what is lost, at {hidden[:5]} to {hidden[-5:]}"


def different(values: Sequence[bytes | None], expected: Sequence[bytes]) -> str:
    """Describe how much is missing or doubled, and where the order first breaks."""
    lost = set(expected) - set(values)
    doubled = len(values) - len(set(values))
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(values, expected, strict=False))
    return f"{len(lost)} lost, {doubled} doubled; in order up to {sum(1 for _ in same)}"


def committed_offsets(broker: Broker, group: str, topic: str, partitions: int) -> list[int]:
    """Return what the group has committed in each partition; nothing while an offset is pending."""
    with Client(broker.bootstrap_servers) as client:
        answer = ask_for_offsets(client, group, topic, partitions)
    if set(codes(answer)) != {Code.NONE}:
        return []
    found = answer.groups[0].topics[0].partitions
    return [each.committed_offset for each in sorted(found, key=lambda each: each.partition_index)]


def ask_for_offsets(client: Client, group: str, topic: str, partitions: int) -> Any:
    """Return the answer to OffsetFetch for stable offsets of the first so many partitions."""
    asked = {"name": topic, "partition_indexes": list(range(partitions))}
    return client.send(
        Api.OFFSET_FETCH,
        8,
        groups=[{"group_id": group, "topics": [asked]}],
        require_stable=True,
    )


def read_committed(
    broker: Broker, topic: str, partitions: int = PARTITIONS
) -> list[list[bytes | None]]:
    """Read the values of each partition to its end, once no transaction is open there."""
    values: list[list[bytes | None]] = [[] for _ in range(partitions)]
    for message in final_records(broker.bootstrap_servers, topic, partitions):
        values[message.partition()].append(message.value())
    return values
