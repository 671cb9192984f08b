"""Plant bugs in the broker, each of which breaks one promise that a checker must see broken.

They are put in from outside, by replacing a method for as long as a history runs; the product has
no switch for any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from coordinator.errors import Code
from coordinator.groups import offsets as group_offsets
from coordinator.groups.shard import GroupShard
from coordinator.local_markers import LocalMarkers
from coordinator.log import recovery
from coordinator.log.cleaner.cleaned_transactions import CleanedTransactionMetadata
from coordinator.log.disk import File
from coordinator.log.partition import PartitionLog
from coordinator.log.producer_state import ProducerStateManager
from coordinator.log.segment import LogSegment
from coordinator.log.transaction_index import TransactionIndex
from coordinator.shard.decision import LogRecordOrigin, TransactionEnded
from coordinator.transactions import producer_ids, service
from coordinator.transactions.service import TransactionService
from coordinator.transactions.state import TransactionSaved
from tests.simulation.checkers import (
    AbortedHidden,
    Acknowledged,
    Checker,
    Compacted,
    Completed,
    ExactlyOnce,
    Fenced,
    GroupOffsets,
    ProducerIds,
    Reload,
    Watermarks,
)
from tests.simulation.disk import Attached
from tests.simulation.world import World

Bug = Callable[[World], AbstractContextManager[None]]


@contextmanager
def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Replace an attribute by what `make` returns for it, until the context ends."""
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def marker_answered_before_offsets_are_materialised(world: World) -> AbstractContextManager[None]:
    """Make the next transaction begin while this one's offsets are pending, as in KAFKA-17507."""

    def make(original: Any) -> Any:
        def end_transaction(self: Any, partition: int, ended: TransactionEnded) -> None:
            shard: GroupShard = self._shards.all[partition]
            log: Any = shard.log
            offset = log._log.append_marker(
                ended.producer_id, ended.producer_epoch, ended.committed, ended.coordinator_epoch
            )
            origin = LogRecordOrigin(offset, ended.producer_id)
            world.loop.after_ms(300, shard.state.apply_record, ended, origin)

        return end_transaction

    return replaced(group_offsets.GroupOffsets, "end_transaction", make)


def batches_of_producers_forgotten_on_restart(world: World) -> AbstractContextManager[None]:
    """Make a restarted broker forget producers' batches, so that it doesn't recognise a retry."""

    def make(original: Any) -> Any:
        def load(self: PartitionLog) -> None:
            original(self)
            producers = self.producers._known
            for producer_id, known in producers.items():
                producers[producer_id] = known._replace(batches=())

        return load

    return replaced(PartitionLog, "open_log", make)


def producers_forgotten_on_restart(world: World) -> AbstractContextManager[None]:
    """Make a restarted broker forget its producers altogether, so that it takes any sequence."""

    def make(original: Any) -> Any:
        def load(self: PartitionLog) -> None:
            original(self)
            open_transactions = self.producers._open
            for producer_id in [p for p in self.producers._known if p not in open_transactions]:
                del self.producers._known[producer_id]

        return load

    return replaced(PartitionLog, "open_log", make)


def stable_offset_ignores_an_open_transaction(world: World) -> AbstractContextManager[None]:
    """Make the last stable offset ignore one of two open transactions, the earlier one."""

    def make(original: Any) -> Any:
        def first_unstable_offset(self: ProducerStateManager) -> int | None:
            offsets = sorted(self._open.values())
            return offsets[1] if len(offsets) > 1 else (offsets[0] if offsets else None)

        return first_unstable_offset

    return replaced(ProducerStateManager, "first_unstable_offset", make)


def new_owner_keeps_the_epoch(world: World) -> AbstractContextManager[None]:
    """Make InitProducerId hand over a transactional id without fencing its former owner."""

    def make(original: Any) -> Any:
        def init_producer_id(state: Any, command: Any, new_id: int, now_ms: int) -> Any:
            known = state.transactions.get(command.transactional_id)
            decision = original(state, command, new_id, now_ms)
            if known is None or known.producer_id != decision.response.producer_id:
                return decision
            [record] = decision.records
            saved = replace(record.transaction, producer_epoch=known.producer_epoch)
            owner = replace(decision.response, producer_epoch=known.producer_epoch)
            return decision._replace(records=(TransactionSaved(saved),), response=owner)

        return init_producer_id

    return replaced(service, "init_producer_id", make)


def torn_tail_takes_a_whole_batch_with_it(world: World) -> AbstractContextManager[None]:
    """Make recovery drop the last whole batch of what it reads of a log."""

    def make(original: Any) -> Any:
        def scan(segment: LogSegment, *rest: Any, **named: Any) -> Iterator[Any]:
            found = list(original(segment, *rest, **named))
            if named["is_last"] and len(found) > 1:
                segment.size -= found.pop().size
                segment.file.truncate(segment.size)
            yield from found

        return scan

    return replaced(recovery, "scan_segment", make)


def aborted_transactions_forgotten_on_restart(world: World) -> AbstractContextManager[None]:
    """Make a restarted broker forget the aborted transactions that readers must drop."""

    def make(original: Any) -> Any:
        def load(self: PartitionLog) -> None:
            original(self)
            for segment in self._segments.all:
                segment.transaction_index = TransactionIndex()

        return load

    return replaced(PartitionLog, "open_log", make)


class _Delayed:
    """Stands in for a file whose writes stay in the process for a while."""

    def __init__(self, file: File, world: World) -> None:
        self._file = file
        self._world = world
        self._held: list[tuple[bytes, int]] = []

    def write(self, data: bytes | bytearray, at: int) -> None:
        self._held.append((bytes(data), at))
        self._world.loop.after_ms(30, self._write_out, self._world.life)

    def _write_out(self, life: int) -> None:
        if self._world.life == life and self._held:
            with self._world.observe_action(), suppress(OSError):
                self._file.write(*self._held.pop(0))

    def _content(self) -> bytearray:
        content = bytearray(self._file.read(1 << 30, 0))
        for data, at in self._held:
            content[at : at + len(data)] = data
        return content

    def read(self, count: int, at: int) -> bytes:
        return bytes(self._content()[at : at + count])

    def size(self) -> int:
        return len(self._content())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def acknowledged_before_it_is_written(world: World) -> AbstractContextManager[None]:
    """Make the broker answer while the written bytes are still in the process."""

    def make(original: Any) -> Any:
        def open_file(self: Attached, path: Path) -> Any:
            file = original(self, path)
            is_data = path.suffix == ".log" and path.parent.name.startswith("input")
            return _Delayed(file, world) if is_data else file

        return open_file

    return replaced(Attached, "open_file", make)


def time_out_keeps_the_epoch(world: World) -> AbstractContextManager[None]:
    """Make the broker abort a transaction that timed out without fencing its owner."""

    def make(original: Any) -> Any:
        def fence_and_abort(known: Any, *rest: Any, **named: Any) -> Any:
            decision = original(known, *rest, **named)
            [record] = decision.records
            saved = replace(record.transaction, producer_epoch=known.producer_epoch)
            return decision._replace(records=(TransactionSaved(saved),))

        return fence_and_abort

    return replaced(service, "fence_and_abort", make)


def producer_ids_used_before_they_are_logged(world: World) -> AbstractContextManager[None]:
    """Make the broker hand out a block of producer ids again that it lost in a crash."""

    def make(original: Any) -> Any:
        def next_id(self: Any) -> int:
            number: int = getattr(self, "_number", self._state.next_block)
            self._number = number + 1
            return number

        return next_id

    return replaced(producer_ids.ProducerIdManager, "generate_producer_id", make)


def what_was_decided_is_not_carried_out_after_a_crash(
    world: World,
) -> AbstractContextManager[None]:
    """Make a restarted broker leave a decided transaction whose markers are not all written."""

    def make(original: Any) -> Any:
        def load_slice(self: Any, shard: Any) -> Any:
            with replaced(
                TransactionService, "write_decided_markers", lambda _: lambda self, key: None
            ):
                return original(self, shard)

        return load_slice

    return replaced(TransactionService, "load_next_shard_slice", make)


def one_partition_gets_no_marker(world: World) -> AbstractContextManager[None]:
    """Make the broker give up a marker that fails once, so that the transaction stays open."""

    def make(original: Any) -> Any:
        def code_of(self: Any, partition: Any, ended: TransactionEnded) -> Code:
            code: Code = original(self, partition, ended)
            return Code.NONE if code is Code.KAFKA_STORAGE_ERROR else code

        return code_of

    return replaced(LocalMarkers, "try_write_marker", make)


def read_committed_reads_to_the_end(world: World) -> AbstractContextManager[None]:
    """Make a read_committed fetch return records of open transactions."""

    def make(original: Any) -> Any:
        def fetch(self: Any, offset: int, max_bytes: int, *, committed: bool, **rest: Any) -> Any:
            found = original(self, offset, max_bytes, committed=False, **rest)
            if not committed:
                return found
            return found._replace(aborted=self.find_aborted_transactions(offset, self.end_offset))

        return fetch

    return replaced(PartitionLog, "fetch_batches", make)


def readers_are_shown_nothing(world: World) -> AbstractContextManager[None]:
    """Make every fetch return an empty log."""

    def make(original: Any) -> Any:
        def fetch(self: Any, *rest: Any, **named: Any) -> Any:
            return original(self, *rest, **named)._replace(records=b"", available=0)

        return fetch

    return replaced(PartitionLog, "fetch_batches", make)


def compaction_believes_what_was_aborted(world: World) -> AbstractContextManager[None]:
    """Make compaction keep a record of an aborted transaction instead of a committed one."""
    return replaced(
        CleanedTransactionMetadata, "on_batch_read", lambda _: lambda self, batch: False
    )


# Each with the checkers that must each see it alone.
BUGS: dict[Bug, tuple[type[Checker], ...]] = {
    marker_answered_before_offsets_are_materialised: (GroupOffsets, Reload),
    batches_of_producers_forgotten_on_restart: (ExactlyOnce, Reload),
    producers_forgotten_on_restart: (ExactlyOnce, Reload),
    stable_offset_ignores_an_open_transaction: (Watermarks, AbortedHidden),
    new_owner_keeps_the_epoch: (Fenced, ProducerIds),
    torn_tail_takes_a_whole_batch_with_it: (Acknowledged, Watermarks),
    aborted_transactions_forgotten_on_restart: (AbortedHidden, Reload),
    acknowledged_before_it_is_written: (Acknowledged, Watermarks),
    time_out_keeps_the_epoch: (Fenced, ExactlyOnce),
    producer_ids_used_before_they_are_logged: (ProducerIds,),
    what_was_decided_is_not_carried_out_after_a_crash: (ExactlyOnce, Completed),
    one_partition_gets_no_marker: (ExactlyOnce,),
    read_committed_reads_to_the_end: (AbortedHidden,),
    compaction_believes_what_was_aborted: (Compacted,),
    readers_are_shown_nothing: (AbortedHidden, Compacted),
}
