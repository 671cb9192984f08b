"""Test that the end of a transaction doesn't complete offsets of the next one (KAFKA-17507).

In Kafka 3.8 the end of a transaction was answered before its offsets had been materialised. The
producer began its next transaction at once, and its new offsets could be committed in the place
of, and together with, those of the transaction that was being completed. Here the offsets of the
next transaction arrive before, during and after the completion of the former, on a whole broker:
"during" is between the answer and the markers, and, where the disk fails, before a marker of the
former is written, after the group's but before the other one, and after both but before the
completion is in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import Code
from coordinator.faults import DiskFault
from coordinator.groups.offsets import GroupOffsets
from coordinator.shard.decision import LogRecordOrigin, TransactionEnded
from coordinator.transactions.markers import RETRY_MS
from coordinator.transactions.service import COMPLETE_RETRY_MS
from tests.unit.coordinator.api.client import Client, run

FETCH, INIT, ADD_PARTITIONS, ADD_OFFSETS, END, WRITE_MARKERS, STAGE = 9, 22, 24, 25, 26, 27, 28
FORMER, NEXT = 10, 20
GROUP_TOPIC, TRANSACTION_TOPIC = "__consumer_offsets", "__transaction_state"


class Producer:
    """Represents a transactional producer of version 1 or 2.

    A v1 producer registers its partitions; a v2 producer gets a new epoch at each end.
    """

    def __init__(self, client: Client, version: int) -> None:
        self.client = client
        self.version = version
        owner = client.ask(INIT, 4, transactional_id="app", transaction_timeout=60_000)
        self.producer_id, self.epoch = owner.producer_id, owner.producer_epoch

    def _identity(self) -> dict[str, Any]:
        return {
            "transactional_id": "app",
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def stage(self, offset: int) -> Code:
        """Stage an offset, after registering the group if v1; return the first refusal's code."""
        if self.version == 1:
            added = self.client.ask(ADD_OFFSETS, 3, **self._identity(), group_id="counts")
            if added.error_code != Code.NONE:
                return Code(added.error_code)
        part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
        answer = self.client.ask(
            STAGE,
            3 if self.version == 1 else 5,
            **self._identity(),
            group_id="counts",
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": "words", "partitions": [part]}],
        )
        return Code(answer.topics[0].partitions[0].error_code)

    def add_output(self) -> None:
        """Add a partition that gets a marker, too, after the group's, whose name sorts first."""
        prefix = "v3_and_below_"
        fields = {f"{prefix}{name}": value for name, value in self._identity().items()}
        topics = [{"name": "words", "partitions": [0]}]
        self.client.ask(ADD_PARTITIONS, 3, **fields, **{f"{prefix}topics": topics})

    def end(self, *, committed: bool = True) -> Code:
        """Send EndTxn; a v2 producer goes on with the epoch of the response."""
        version = 3 if self.version == 1 else 5
        answer = self.client.ask(END, version, **self._identity(), committed=committed)
        if version == 5 and answer.error_code == Code.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return Code(answer.error_code)


def fetched(client: Client) -> tuple[Code, int]:
    """Return the group's code and offset in a stable OffsetFetch."""
    topics = [{"name": "words", "partition_indexes": [0]}]
    answer = client.ask(FETCH, 7, group_id="counts", topics=topics, require_stable=True)
    part = answer.topics[0].partitions[0]
    return Code(part.error_code), part.committed_offset


STABLE = (Code.NONE, FORMER)
UNSTABLE = (Code.UNSTABLE_OFFSET_COMMIT, -1)
# Retriable errors: the producer retries until the former transaction is complete.
BUSY = {1: Code.CONCURRENT_TRANSACTIONS, 2: Code.COORDINATOR_LOAD_IN_PROGRESS}


def retry(client: Client, delay_ms: int) -> None:
    """Run the retries that wait for this delay."""
    client.clock.time_ms += delay_ms
    for callback in client.scheduler.pending(delay_ms):
        callback()


def next_counts_by_itself(client: Client, producer: Producer) -> None:
    """Check that the completed offset counts, and the next only with its own transaction."""
    assert fetched(client) == STABLE
    assert producer.stage(NEXT) is Code.NONE
    assert fetched(client) == UNSTABLE
    assert producer.end(committed=False) is Code.NONE
    assert fetched(client) == STABLE
    assert producer.stage(NEXT) is Code.NONE
    assert fetched(client) == UNSTABLE
    assert producer.end() is Code.NONE
    assert fetched(client) == (Code.NONE, NEXT)


def before(client: Client, producer: Producer) -> None:
    """Check offsets that arrive before EndTxn: accepted under its epoch, refused under the next."""
    assert producer.stage(FORMER - 1) is Code.NONE
    producer.epoch += 1
    code = producer.stage(NEXT)
    assert code is (Code.PRODUCER_FENCED if producer.version == 1 else Code.INVALID_PRODUCER_EPOCH)
    producer.epoch -= 1
    assert producer.stage(FORMER) is Code.NONE
    assert fetched(client) == UNSTABLE
    assert producer.end() is Code.NONE
    next_counts_by_itself(client, producer)


def during_the_answer(client: Client, producer: Producer) -> None:
    """Check offsets that arrive after the answer to EndTxn was made, and before any marker."""
    producer.stage(FORMER)
    client.scheduler.is_held = True
    assert producer.end() is Code.NONE
    assert producer.stage(NEXT) is BUSY[producer.version]
    assert fetched(client) == UNSTABLE
    client.scheduler.is_held = False
    client.scheduler.run_due_now()
    next_counts_by_itself(client, producer)


def during_before_the_marker(client: Client, producer: Producer) -> None:
    """Check the decided transaction without a marker: its offset is hidden, the next is refused.

    The next one is refused until the former counts.
    """
    producer.stage(FORMER)
    fault = client.broker.faults.add(DiskFault("fail-append", topic=GROUP_TOPIC))
    assert producer.end() is Code.NONE
    assert fault.struck == 1
    assert producer.stage(NEXT) is BUSY[producer.version]
    assert fetched(client) == UNSTABLE
    fault.remove()
    assert producer.stage(NEXT) is BUSY[producer.version]
    retry(client, RETRY_MS)
    next_counts_by_itself(client, producer)


def during_between_the_markers(client: Client, producer: Producer) -> None:
    """Check the transaction with the group's marker only: its offset counts, the next is refused.

    Another partition has no marker yet, so that the former is not complete.
    """
    producer.stage(FORMER)
    producer.add_output()
    fault = client.broker.faults.add(DiskFault("fail-append", topic="words"))
    assert producer.end() is Code.NONE
    assert fault.struck == 1
    assert fetched(client) == STABLE
    assert producer.stage(NEXT) is BUSY[producer.version]
    assert fetched(client) == STABLE
    fault.remove()
    retry(client, RETRY_MS)
    next_counts_by_itself(client, producer)


def during_before_the_completion_is_logged(client: Client, producer: Producer) -> None:
    """Check the transaction whose completion is not logged: the next one can't begin.

    All markers are written, but after a crash the former would be completed again.
    """
    producer.stage(FORMER)
    fault = client.broker.faults.add(DiskFault("fail-append", topic=TRANSACTION_TOPIC, after=1))
    assert producer.end() is Code.NONE
    assert fault.struck == 1
    assert fetched(client) == STABLE
    assert producer.stage(NEXT) is BUSY[producer.version]
    assert fetched(client) == STABLE
    fault.remove()
    retry(client, COMPLETE_RETRY_MS)
    next_counts_by_itself(client, producer)


def after(client: Client, producer: Producer) -> None:
    producer.stage(FORMER)
    assert producer.end() is Code.NONE
    next_counts_by_itself(client, producer)


INTERLEAVINGS = (
    before,
    during_the_answer,
    during_before_the_marker,
    during_between_the_markers,
    during_before_the_completion_is_logged,
    after,
)
Interleaving = Callable[[Client, Producer], None]


def play(data_dir: Path, interleaving: Interleaving, version: int) -> None:
    async def scenario() -> None:
        client = Client(data_dir)
        client.create("words")
        interleaving(client, Producer(client, version))
        client.broker.close()

    run(scenario())


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("interleaving", INTERLEAVINGS)
def test_the_next_transaction_s_offsets_never_count_with_the_former(
    tmp_path: Path, interleaving: Interleaving, version: int
) -> None:
    play(tmp_path, interleaving, version)


def test_once_a_marker_is_answered_its_offsets_count(tmp_path: Path) -> None:
    """Check that WriteTxnMarkers of another coordinator is answered when its offsets count."""

    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("words")
        producer = Producer(client, 1)
        producer.stage(FORMER)
        marker = {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "transaction_result": True,
            "topics": [{"name": GROUP_TOPIC, "partition_indexes": [0]}],
            "coordinator_epoch": 0,
        }
        answer = client.ask(WRITE_MARKERS, 1, markers=[marker])
        assert answer.markers[0].topics[0].partitions[0].error_code == Code.NONE
        assert fetched(client) == STABLE

    run(scenario())


@contextmanager
def answered_too_early() -> Iterator[None]:
    """Plant the bug that a written marker is answered at once but applied with the next append."""
    late: list[Callable[[], None]] = []
    original_commit, original_end = GroupOffsets.commit_offsets, GroupOffsets.end_transaction

    def end_transaction(self: Any, partition: int, ended: TransactionEnded) -> None:
        shard = self._shards.all[partition]
        offset = shard.log._log.append_marker(
            ended.producer_id, ended.producer_epoch, ended.committed, ended.coordinator_epoch
        )
        late.append(lambda: shard.state.apply(ended, LogRecordOrigin(offset, ended.producer_id)))

    def commit(self: Any, *arguments: Any, **named: Any) -> Any:
        codes = original_commit(self, *arguments, **named)
        while late:
            late.pop()()
        return codes

    GroupOffsets.commit_offsets, GroupOffsets.end_transaction = commit, end_transaction  # type: ignore[method-assign]
    try:
        yield
    finally:
        GroupOffsets.commit_offsets = original_commit  # type: ignore[method-assign]
        GroupOffsets.end_transaction = original_end  # type: ignore[method-assign]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("interleaving", INTERLEAVINGS)
def test_the_bug_itself_is_seen_in_every_interleaving(
    tmp_path: Path, interleaving: Interleaving, version: int
) -> None:
    with answered_too_early(), pytest.raises(AssertionError):
        play(tmp_path, interleaving, version)
