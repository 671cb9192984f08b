"""KAFKA-17507: a transaction's offsets must not be completed by the end of the one before it.

In Kafka 3.8 the end of a transaction was answered before its offsets had been materialised. The
producer began its next transaction at once, and its new offsets could be committed in the place
of, and together with, those of the transaction that was being completed. Here the offsets of the
next transaction arrive before, during and after the completion of the former, on a whole broker
whose disk fails where "during" has to last: before a marker of the former is written, after the
group's but before the other one, and after both but before the completion is in the log.
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
    """A transactional producer of the first kind (v1: it registers what it touches) or of the
    second (v2: each end of a transaction gives it a new epoch)."""

    def __init__(self, client: Client, version: int) -> None:
        self.client = client
        self.version = version
        owner = client.ask(INIT, 4, transactional_id="app", transaction_timeout=60_000)
        self.producer_id, self.epoch = owner.producer_id, owner.producer_epoch

    def _who(self) -> dict[str, Any]:
        return {
            "transactional_id": "app",
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def stage(self, offset: int) -> Code:
        """Register the group if the producer's kind does, and the offset: the first refusal."""
        if self.version == 1:
            added = self.client.ask(ADD_OFFSETS, 3, **self._who(), group_id="counts")
            if added.error_code != Code.NONE:
                return Code(added.error_code)
        part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
        answer = self.client.ask(
            STAGE,
            3 if self.version == 1 else 5,
            **self._who(),
            group_id="counts",
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": "words", "partitions": [part]}],
        )
        return Code(answer.topics[0].partitions[0].error_code)

    def add_output(self) -> None:
        """A partition that gets a marker, too; after the group's, whose name comes first."""
        prefix = "v3_and_below_"
        fields = {f"{prefix}{name}": value for name, value in self._who().items()}
        topics = [{"name": "words", "partitions": [0]}]
        self.client.ask(ADD_PARTITIONS, 3, **fields, **{f"{prefix}topics": topics})

    def end(self, *, committed: bool = True) -> Code:
        """EndTxn; a producer of the second kind goes on with the epoch that it is given."""
        version = 3 if self.version == 1 else 5
        answer = self.client.ask(END, version, **self._who(), committed=committed)
        if version == 5 and answer.error_code == Code.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return Code(answer.error_code)


def fetched(client: Client) -> tuple[Code, int]:
    """What a stable OffsetFetch says of the group."""
    topics = [{"name": "words", "partition_indexes": [0]}]
    answer = client.ask(FETCH, 7, group_id="counts", topics=topics, require_stable=True)
    part = answer.topics[0].partitions[0]
    return Code(part.error_code), part.committed_offset


STABLE = (Code.NONE, FORMER)
UNSTABLE = (Code.UNSTABLE_OFFSET_COMMIT, -1)
# What a producer does not give up for: it asks again until the former transaction is complete.
BUSY = {1: Code.CONCURRENT_TRANSACTIONS, 2: Code.COORDINATOR_LOAD_IN_PROGRESS}


def retry(client: Client, delay_ms: int) -> None:
    """The time has come for what was to be tried again after this delay."""
    client.clock.time_ms += delay_ms
    for callback in client.scheduler.pending(delay_ms):
        callback()


def next_counts_by_itself(client: Client, producer: Producer) -> None:
    """After the former has been completed: its offset counts, and the next one's only with its own
    transaction."""
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
    """An offset that arrives before the end is asked for is part of the former transaction if it
    comes under its epoch, and refused under the next one's."""
    assert producer.stage(FORMER - 1) is Code.NONE
    producer.epoch += 1
    code = producer.stage(NEXT)
    assert code is (Code.PRODUCER_FENCED if producer.version == 1 else Code.INVALID_PRODUCER_EPOCH)
    producer.epoch -= 1
    assert producer.stage(FORMER) is Code.NONE
    assert fetched(client) == UNSTABLE
    assert producer.end() is Code.NONE
    next_counts_by_itself(client, producer)


def during_before_the_marker(client: Client, producer: Producer) -> None:
    """Decided, but no marker is written: the former's offset is not to be seen yet, and the next
    one's is refused until it is."""
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
    """The group has its marker, so that the former's offset counts, but another partition has none:
    the former is not complete, and the next one's offset is refused."""
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
    """All markers are written, but the log doesn't say yet that the former is complete: it would be
    completed again after a crash, so that the next one can't begin."""
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
    """The marker of a coordinator elsewhere: WriteTxnMarkers, too, is answered when all is done."""

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
    """The bug: the marker is in the log and answered, and applied when somebody next appends."""
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
