"""Test that kill -9 loses no acknowledged data, offsets, open transactions or members.

All is prepared first; then the broker is killed, half a batch is left at the end of one log as a
torn write would leave it, and the broker is started, stopped cleanly and started once more. The
cases look at what is there then; each has topics, groups and ids of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance import batches
from tests.conformance.calls import (
    LATEST,
    READ_COMMITTED,
    commit_offset,
    committed,
    create_topic,
    end_offset,
    fetch,
    fetch_offset,
    list_offset,
    metadata,
    produce,
    settled,
    topic_id,
)
from tests.conformance.members import Member, alone, subscription, together
from tests.conformance.producers import Producer, init_producer_id
from tests.conformance.wire import Client

UNSETTLED = (
    Code.UNKNOWN_TOPIC_OR_PARTITION,
    Code.LEADER_NOT_AVAILABLE,
    Code.NOT_LEADER_OR_FOLLOWER,
    Code.OFFSET_NOT_AVAILABLE,
)


@dataclass
class Before:
    """Holds what was acknowledged before the broker was killed."""

    client: Client
    name: Callable[[str], str]
    topics: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    producers: dict[str, Producer] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    ids: dict[str, UUID] = field(default_factory=dict)
    idempotent_id: int = -1

    def topic(self, what: str, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        self.topics[what] = self.name(f"{what}-topic")
        create_topic(self.client, self.topics[what], partitions, configs)
        return self.topics[what]

    def group(self, what: str) -> str:
        self.groups[what] = self.name(f"{what}-group")
        return self.groups[what]

    def producer(self, what: str) -> Producer:
        self.producers[what] = Producer.init(self.client, self.name(f"{what}-txn"))
        return self.producers[what]


@pytest.fixture(scope="module")
def before(broker: Broker, coordinators: None, unique: Callable[[str], str]) -> Before:
    if broker.kind == "address":
        pytest.skip(f"{broker.bootstrap_servers} can't be killed by the tests")
    with (
        Client(broker.bootstrap_servers, complete=broker.kind == "kafka") as client,
        Client(broker.bootstrap_servers) as second,
    ):
        made = Before(client, unique)
        prepare_logs(made)
        prepare_transactions(made)
        prepare_groups(made, second)
        broker.kill()
    (torn,) = broker.data_dir.glob(f"{made.topics['torn']}-0/*.log")
    with torn.open("ab") as log:
        log.write(batches.encode(b"never acknowledged")[:40])
    broker.restart()
    broker.stop()
    broker.restart()
    with Client(broker.bootstrap_servers) as after:
        for topic in metadata(after, *made.topics.values()).topics:
            for each in topic.partitions:
                ask = partial(list_offset, after, topic.name, LATEST)
                settled(partial(ask, partition=each.partition_index), UNSETTLED)
    return made


def prepare_logs(before: Before) -> None:
    client = before.client
    data = before.topic("data", partitions=3, configs={"cleanup.policy": "compact"})
    for number in range(50):
        for partition in range(3):
            value = b"%d of %d" % (number, partition)
            produce(client, data, batches.encode((b"key", value)), partition=partition)
    before.ids["data"] = topic_id(client, data)
    produce(client, before.topic("torn"), batches.encode(b"acknowledged"))
    before.idempotent_id = init_producer_id(client, None).producer_id
    idempotent = before.topic("idempotent")
    for sequence in range(3):
        produce(client, idempotent, idempotent_batch(before, sequence))


def idempotent_batch(before: Before, sequence: int) -> bytes:
    return batches.encode(b"x", producer_id=before.idempotent_id, epoch=0, sequence=sequence)


def prepare_transactions(before: Before) -> None:
    decided = before.topic("decided")
    producer = before.producer("decided")
    for value, finish in ((b"yes", producer.commit), (b"no", producer.abort)):
        producer.add(decided)
        producer.write(decided, value)
        finish()
    for what in ("to be committed", "to be aborted", "to be fenced"):
        open_one = before.producer(what.replace(" ", "-"))
        name = before.topic(what.replace(" ", "-"))
        group = before.group(what.replace(" ", "-"))
        commit_offset(before.client, group, name, 1)
        open_one.add(name)
        open_one.write(name, b"before")
        assert open_one.add_offsets(group) == Code.NONE
        assert open_one.stage_offset(group, name, 2) == Code.NONE
    before.producer("answered")
    before.producers["answered"].add(decided)
    assert before.producers["answered"].end(committed=True) == Code.NONE


def prepare_groups(before: Before, second: Client) -> None:
    client = before.client
    commit_offset(client, before.group("offsets"), before.topics["data"], 17, metadata="cut")
    dynamic = before.group("dynamic")
    before.members["dynamic"] = alone(Member(client, dynamic, user_data=b"mine"), b"dynamic part")
    static = before.group("static")
    leader = alone(Member(client, static, instance_id="one"))
    follower = Member(second, static, instance_id="two")
    together(leader, follower)
    before.members |= {"leader": leader, "follower": follower}


@pytest.fixture
def again(client: Client) -> Callable[[Any], Any]:
    """Return a function that moves a former producer or member to a new connection."""

    def move(what: Any) -> Any:
        what.client = client
        return what

    return move


# The log


def test_every_acknowledged_record_is_there_at_its_offset(before: Before, client: Client) -> None:
    for partition in range(3):
        answer = fetch(client, before.topics["data"], 0, partition=partition)
        expected = [b"%d of %d" % (number, partition) for number in range(50)]
        assert batches.values(answer.records) == expected
        assert answer.high_watermark == 50


def test_half_a_batch_at_the_end_of_the_log_is_cut_off(before: Before, client: Client) -> None:
    name = before.topics["torn"]
    assert end_offset(client, name) == 1
    assert produce(client, name, batches.encode(b"next")).base_offset == 1
    assert batches.values(fetch(client, name, 0).records) == [b"acknowledged", b"next"]


def test_topics_keep_their_ids_and_partitions(before: Before, client: Client) -> None:
    (found,) = metadata(client, before.topics["data"]).topics
    assert found.topic_id == before.ids["data"]
    assert len(found.partitions) == 3


def test_a_producer_s_last_batch_is_known_when_it_is_repeated(
    before: Before, client: Client
) -> None:
    """Check the last batch only, as Kafka forgets the four before it in a clean stop."""
    name = before.topics["idempotent"]
    answer = produce(client, name, idempotent_batch(before, 2))
    assert (answer.error_code, answer.base_offset) == (Code.NONE, 2)
    gap = produce(client, name, idempotent_batch(before, 4))
    assert gap.error_code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, name, idempotent_batch(before, 3)).base_offset == 3


def test_an_aborted_transaction_is_still_known_as_aborted(before: Before, client: Client) -> None:
    answer = fetch(client, before.topics["decided"], 0, isolation=READ_COMMITTED)
    assert [each.first_offset for each in answer.aborted_transactions] == [2]
    assert answer.last_stable_offset == answer.high_watermark


# Transactions


def test_an_open_transaction_is_still_open_and_can_go_on_and_be_committed(
    before: Before, client: Client, again: Callable[[Producer], Producer]
) -> None:
    name, group = before.topics["to-be-committed"], before.groups["to-be-committed"]
    assert fetch(client, name, 0, isolation=READ_COMMITTED).last_stable_offset == 0
    pending = fetch_offset(client, group, name, stable=True)
    assert pending.error_code == Code.UNSTABLE_OFFSET_COMMIT
    producer = again(before.producers["to-be-committed"])
    assert producer.write(name, b"after").error_code == Code.NONE
    producer.commit()
    answer = fetch(client, name, 0, isolation=READ_COMMITTED)
    assert batches.values(answer.records) == [b"before", b"after"]
    assert answer.aborted_transactions == ()
    assert committed(client, group, name) == 2


def test_an_open_transaction_can_be_aborted(
    before: Before, client: Client, again: Callable[[Producer], Producer]
) -> None:
    name, group = before.topics["to-be-aborted"], before.groups["to-be-aborted"]
    again(before.producers["to-be-aborted"]).abort()
    answer = fetch(client, name, 0, isolation=READ_COMMITTED)
    assert [each.first_offset for each in answer.aborted_transactions] == [0]
    found = fetch_offset(client, group, name, stable=True)
    assert (found.error_code, found.committed_offset) == (Code.NONE, 1)


def test_a_new_producer_aborts_the_open_transaction_of_before_and_fences_its_producer(
    before: Before, client: Client, again: Callable[[Producer], Producer]
) -> None:
    old = again(before.producers["to-be-fenced"])
    new = Producer.init(client, old.transactional_id)
    assert new.producer_id == old.producer_id
    assert new.epoch > old.epoch
    assert old.end(committed=True) == Code.INVALID_PRODUCER_EPOCH
    name = before.topics["to-be-fenced"]
    answer = fetch(client, name, 0, isolation=READ_COMMITTED)
    assert [each.first_offset for each in answer.aborted_transactions] == [0]
    found = fetch_offset(client, before.groups["to-be-fenced"], name, stable=True)
    assert found.committed_offset == 1


def test_an_end_that_was_answered_is_granted_again_and_its_opposite_is_not(
    before: Before, again: Callable[[Producer], Producer]
) -> None:
    producer = again(before.producers["answered"])
    assert producer.end(committed=True) == Code.NONE
    assert producer.end(committed=False) == Code.INVALID_TXN_STATE


def test_epochs_go_on_and_producer_ids_are_not_given_twice(before: Before, client: Client) -> None:
    old = before.producers["decided"]
    answer = init_producer_id(client, old.transactional_id)
    assert (answer.producer_id, answer.producer_epoch) == (old.producer_id, old.epoch + 1)
    given = {each.producer_id for each in before.producers.values()} | {before.idempotent_id}
    fresh = {init_producer_id(client, None).producer_id for _ in range(20)}
    assert not given & fresh


# Groups


def test_committed_offsets_are_there_with_their_metadata(before: Before, client: Client) -> None:
    found = fetch_offset(client, before.groups["offsets"], before.topics["data"])
    assert (found.committed_offset, found.metadata) == (17, "cut")


def test_a_member_that_heartbeats_is_still_in_its_generation(
    before: Before, again: Callable[[Member], Member]
) -> None:
    member = again(before.members["dynamic"])
    member.warm_up()
    assert member.heartbeat() == Code.NONE
    assert member.sync().assignment == b"dynamic part"
    code = commit_offset(
        member.client,
        member.group,
        before.topics["data"],
        5,
        generation=member.generation,
        member_id=member.member_id,
    )
    assert code == Code.NONE
    answer = member.join()
    assert answer.generation_id == 2
    assert [each.metadata for each in answer.members] == [subscription(b"mine")]


def test_a_static_member_gets_its_place_back_without_a_new_round(
    before: Before, connect: Callable[[], Client], again: Callable[[Member], Member]
) -> None:
    leader = again(before.members["leader"])
    back = Member(connect(), before.groups["static"], instance_id="two")
    answer = back.join()
    assert (answer.error_code, answer.generation_id) == (Code.NONE, leader.generation)
    assert back.sync().assignment == b"second"
    assert leader.heartbeat() == Code.NONE
    assert again(before.members["follower"]).heartbeat() == Code.FENCED_INSTANCE_ID
