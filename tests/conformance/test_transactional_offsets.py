"""Test that transactional offsets are pending until the end, and only members commit them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.errors import Code
from tests.conformance.calls import (
    commit_offset,
    committed,
    fetch_offset,
    fetch_offsets,
    settled_offset,
)
from tests.conformance.members import Member, alone
from tests.conformance.producers import Producer
from tests.conformance.wire import Client


@pytest.fixture
def producer(client: Client, transactional_id: str, group: str) -> Producer:
    """Return a producer with the group's offsets in its open transaction."""
    made = Producer.init(client, transactional_id)
    assert made.add_offsets(group) == Code.NONE
    return made


def test_staged_offsets_are_committed_with_the_transaction(
    client: Client, group: str, topic: str, producer: Producer
) -> None:
    assert producer.stage_offset(group, topic, 10, metadata="cut") == Code.NONE
    assert committed(client, group, topic) == -1
    producer.commit()
    found = fetch_offset(client, group, topic, stable=True)
    assert (found.error_code, found.committed_offset, found.metadata) == (Code.NONE, 10, "cut")


def test_staged_offsets_go_with_an_aborted_transaction(
    client: Client, group: str, topic: str, producer: Producer
) -> None:
    commit_offset(client, group, topic, 3, metadata="before")
    assert producer.stage_offset(group, topic, 10) == Code.NONE
    producer.abort()
    found = fetch_offset(client, group, topic, stable=True)
    assert (found.error_code, found.committed_offset, found.metadata) == (Code.NONE, 3, "before")


def test_while_an_offset_is_pending_a_stable_fetch_gets_88_and_any_other_the_old_value(
    client: Client, group: str, topic: str, producer: Producer
) -> None:
    commit_offset(client, group, topic, 3)
    producer.stage_offset(group, topic, 10)
    stable = fetch_offset(client, group, topic, stable=True)
    assert (stable.error_code, stable.committed_offset) == (Code.UNSTABLE_OFFSET_COMMIT, -1)
    unstable = fetch_offset(client, group, topic)
    assert (unstable.error_code, unstable.committed_offset) == (Code.NONE, 3)
    producer.abort()


def test_only_the_partitions_with_a_pending_offset_are_unstable(
    client: Client, group: str, topic: str, other_topic: str, producer: Producer
) -> None:
    commit_offset(client, group, other_topic, 4)
    producer.stage_offset(group, topic, 10)
    answer = fetch_offsets(client, group, {topic: [0], other_topic: [0]}, stable=True)
    found = {each.name: each.partitions[0] for each in answer.topics}
    assert found[topic].error_code == Code.UNSTABLE_OFFSET_COMMIT
    assert found[other_topic].error_code == Code.NONE
    assert found[other_topic].committed_offset == 4
    producer.abort()


def test_once_the_end_is_answered_no_stable_fetch_gives_the_old_value(
    client: Client, group: str, topic: str, transactional_id: str
) -> None:
    """Check the race of KAFKA-17507: the next transaction may begin once this one has ended."""
    producer = Producer.init(client, transactional_id)
    for offset in range(1, 21):
        assert producer.add_offsets(group) == Code.NONE
        assert producer.stage_offset(group, topic, offset) == Code.NONE
        assert producer.end(committed=True) == Code.NONE
        assert settled_offset(client, group, topic) == offset


def test_the_last_offset_staged_in_a_transaction_counts(
    client: Client, group: str, topic: str, producer: Producer
) -> None:
    for offset in (10, 30, 20):
        producer.stage_offset(group, topic, offset)
    producer.commit()
    assert committed(client, group, topic) == 20


def test_a_plain_commit_after_the_staging_is_newer_than_the_transaction_s(
    client: Client, group: str, topic: str, producer: Producer
) -> None:
    producer.stage_offset(group, topic, 10)
    assert commit_offset(client, group, topic, 50) == Code.NONE
    producer.commit()
    assert committed(client, group, topic) == 50


def test_metadata_of_4097_bytes_is_refused_with_12_and_stages_nothing(
    client: Client, group: str, topic: str, producer: Producer
) -> None:
    too_large = producer.stage_offset(group, topic, 10, metadata="x" * 4097)
    assert too_large == Code.OFFSET_METADATA_TOO_LARGE
    assert fetch_offset(client, group, topic, stable=True).error_code == Code.NONE
    assert producer.stage_offset(group, topic, 11, metadata="x" * 4096) == Code.NONE
    producer.commit()
    assert len(fetch_offset(client, group, topic).metadata) == 4096


def test_a_member_may_stage_in_its_own_generation_only(
    connect: Callable[[], Client], group: str, topic: str, producer: Producer
) -> None:
    member = alone(Member(connect(), group))

    def stage(offset: int, generation: int, member_id: str) -> Code:
        return producer.stage_offset(
            group, topic, offset, generation=generation, member_id=member_id
        )

    assert stage(1, member.generation - 1, member.member_id) == Code.ILLEGAL_GENERATION
    assert stage(2, member.generation + 1, member.member_id) == Code.ILLEGAL_GENERATION
    assert stage(3, member.generation, "nobody") == Code.UNKNOWN_MEMBER_ID
    assert stage(4, member.generation, member.member_id) == Code.NONE
    producer.commit()
    assert committed(member.client, group, topic) == 4


def test_a_generation_of_a_group_that_does_not_exist_is_refused_with_22(
    group: str, topic: str, producer: Producer
) -> None:
    code = producer.stage_offset(group, topic, 1, generation=1, member_id="someone")
    assert code == Code.ILLEGAL_GENERATION


def test_in_a_group_that_has_offsets_but_no_members_every_member_is_unknown(
    group: str, topic: str, producer: Producer
) -> None:
    assert producer.stage_offset(group, topic, 1) == Code.NONE
    code = producer.stage_offset(group, topic, 2, generation=1, member_id="someone")
    assert code == Code.UNKNOWN_MEMBER_ID


def test_a_producer_that_names_no_member_may_stage_even_if_the_group_has_members(
    connect: Callable[[], Client], group: str, topic: str, producer: Producer
) -> None:
    alone(Member(connect(), group))
    assert producer.stage_offset(group, topic, 8) == Code.NONE
    producer.commit()
    assert committed(producer.client, group, topic) == 8


def test_a_static_member_that_was_replaced_is_refused_with_82(
    connect: Callable[[], Client], group: str, topic: str, producer: Producer
) -> None:
    old = alone(Member(connect(), group, instance_id="one"))
    new = Member(connect(), group, instance_id="one")
    assert new.join().error_code == Code.NONE
    assert new.member_id != old.member_id

    def stage(member: Member) -> Code:
        return producer.stage_offset(
            group,
            topic,
            6,
            generation=member.generation,
            member_id=member.member_id,
            instance_id="one",
        )

    assert stage(old) == Code.FENCED_INSTANCE_ID
    assert stage(new) == Code.NONE
    producer.commit()


def test_offsets_of_a_group_that_is_not_in_the_transaction_are_refused_with_48(
    client: Client, topic: str, transactional_id: str, group: str
) -> None:
    producer = Producer.init(client, transactional_id)
    assert producer.stage_offset(group, topic, 1) == Code.INVALID_TXN_STATE
    assert fetch_offset(client, group, topic, stable=True).error_code == Code.NONE


def test_a_fenced_producer_stages_nothing(
    client: Client, group: str, topic: str, producer: Producer
) -> None:
    producer.stage_offset(group, topic, 10)
    Producer.init(client, producer.transactional_id)
    assert producer.stage_offset(group, topic, 20) == Code.INVALID_PRODUCER_EPOCH
    assert settled_offset(client, group, topic) == -1


def test_two_transactions_stage_for_one_group_independently(
    client: Client, group: str, topic: str, other_topic: str, unique: Callable[[str], str]
) -> None:
    one, two = (Producer.init(client, unique("txn")) for _ in range(2))
    for producer, name in ((one, topic), (two, other_topic)):
        assert producer.add_offsets(group) == Code.NONE
        assert producer.stage_offset(group, name, 5) == Code.NONE
    one.commit()
    assert committed(client, group, topic) == 5
    pending = fetch_offset(client, group, other_topic, stable=True)
    assert pending.error_code == Code.UNSTABLE_OFFSET_COMMIT
    two.abort()
    assert committed(client, group, other_topic) == -1


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_offsets_are_staged_at_each_version(
    client: Client, group: str, topic: str, producer: Producer, version: int
) -> None:
    assert producer.stage_offset(group, topic, 12, version=version) == Code.NONE
    producer.commit()
    assert committed(client, group, topic) == 12
