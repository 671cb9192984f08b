"""Clean one log, from its first reading to the last segment put in place, in steps.

    1. the dirty part is read, and the last offset of each key noted     (offset_map_builder)
    2. run by run, the surviving records are copied to a new segment     (batch_compaction)
       beside the log
    3. which replaces the run as soon as it is complete                  (replace_segments)

Readers find the old segments or the new one, and so does a broker that was killed in between. If
the map was full before the dirty part was read, the cleaning ends there, and the rest is for the
next one. A log that changes under it (old segments were removed, the topic deleted, damage was met)
is left alone. Kafka: `Cleaner.doClean`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from coordinator.log.batch import RecordBatch, iterate_batches, parse_header
from coordinator.log.cleaner.batch_compaction import (
    CleaningParameters,
    LastProducerRecord,
    compact_batch,
)
from coordinator.log.cleaner.cleanable_section import CleanableSection, group_segments_by_size
from coordinator.log.cleaner.cleaned_transactions import CleanedTransactionMetadata
from coordinator.log.cleaner.offset_map import OffsetMap
from coordinator.log.cleaner.offset_map_builder import try_add_batch_to_offset_map
from coordinator.log.cleaner.steps import AsyncOperation, Steps
from coordinator.log.partition import PartitionLog
from coordinator.log.segment import LogSegment

CleanedToOffset: TypeAlias = int

_READ_BYTES = 64 << 10
_WRITE_BYTES = 64 << 10
_BATCHES_A_STEP = 32
_CHECKPOINT_STEPS = 50_000  # more than half a minute where steps are run in slices


class LogCleaningAborted(Exception):
    """Reports that a log can't be cleaned at this time.

    Segments that were being cleaned are no longer in it, a replacement before is in no checkpoint
    yet, or damage was met, and all of it has to stay. Kafka: `LogCleaningAbortedException`.
    """


def clean_log(
    partition: PartitionLog, section: CleanableSection, map_bytes_max: int, now_ms: int
) -> Steps[CleanedToOffset]:
    """Clean a section of a log in steps, and return the offset up to which it is clean then.

    Raises: LogCleaningAborted; `CorruptBatch`, ValueError or IndexError where something in the log
    is no batch or no record; OSError.
    """
    offsets = OffsetMap(map_bytes_max)
    offsets.end_offset = section.first_dirty_offset
    aborted = partition.find_aborted_transactions(section.first_dirty_offset, section.end_offset)
    transactions = CleanedTransactionMetadata(aborted)
    ends = _list_segment_end_offsets(section.segments, section.end_offset)
    for segment, end in zip(section.segments, ends, strict=True):
        if end <= section.first_dirty_offset:
            continue
        if not (
            yield from _try_add_segment_to_offset_map(
                partition, segment, offsets, transactions, section.first_dirty_offset
            )
        ):
            break
        offsets.end_offset = end
    settings = partition.settings
    chosen = [each for each in section.segments if each.base_offset < offsets.end_offset]
    end = ends[len(chosen) - 1]
    transactions = CleanedTransactionMetadata(
        partition.find_aborted_transactions(chosen[0].base_offset, end)
    )
    all_runs = group_segments_by_size(chosen, end, settings)
    for run in all_runs:
        cleaning = CleaningParameters(
            offsets=offsets,
            now_ms=now_ms,
            delete_retention_ms=settings.delete_retention_ms,
            max_message_bytes=settings.max_message_bytes,
            producers=_find_last_producer_records(partition),
        )
        is_last = run is all_runs[-1]
        clean_to = offsets.end_offset if is_last else section.first_dirty_offset
        yield from _compact_run(partition, run, cleaning, transactions, clean_to)
    yield from offsets.clear_in_steps()
    return offsets.end_offset


def _list_segment_end_offsets(segments: Sequence[LogSegment], end_offset: int) -> list[int]:
    """Return the offset at which each segment ends, the last one at `end_offset`."""
    return [*(each.base_offset for each in segments[1:]), end_offset]


def _find_last_producer_records(partition: PartitionLog) -> dict[int, LastProducerRecord]:
    """Return the last data offset and the epoch of each producer of the partition."""
    found = {}
    for producer_id, known, _ in partition.producers.iterate_producers():
        last = known.batches[-1] if known.batches else None
        found[producer_id] = LastProducerRecord(last.last_offset if last else None, known.epoch)
    return found


def _read_batches_in_pieces(
    partition: PartitionLog, segment_run: Sequence[LogSegment], segment: LogSegment
) -> Iterator[Sequence[RecordBatch]]:
    """Yield all batches of one segment of a run, a list of some batches at a time.

    Raises: LogCleaningAborted if the run has left the log since the piece before: then its files
    may be closed and gone.
    """
    position = 0
    while position < segment.size:
        _check_run_in_log(partition, segment_run)
        data = segment.read_batches(position, _READ_BYTES)
        yield list(iterate_batches(data))
        position += len(data)


def _try_add_segment_to_offset_map(
    partition: PartitionLog,
    segment: LogSegment,
    offsets: OffsetMap,
    transactions: CleanedTransactionMetadata,
    first_dirty_offset: int,
) -> Steps[bool]:
    """Add the keys of a segment's dirty batches to the offset map; return False if it is full."""
    for piece in _read_batches_in_pieces(partition, [segment], segment):
        for at, batch in enumerate(piece):
            if batch.last_offset < first_dirty_offset:
                continue
            if not (
                yield from try_add_batch_to_offset_map(
                    batch, offsets, transactions, first_dirty_offset
                )
            ):
                return False
            if at % _BATCHES_A_STEP == 0:
                yield None
        yield None
    return True


def _compact_run(
    partition: PartitionLog,
    segment_run: list[LogSegment],
    cleaning: CleaningParameters,
    transactions: CleanedTransactionMetadata,
    first_dirty_offset: int,
) -> Steps[None]:
    """Copy the surviving records of a run to a new segment, and replace the run by it.

    The log is clean up to `first_dirty_offset` then. Raises: LogCleaningAborted.
    """
    for _ in range(_CHECKPOINT_STEPS):  # the last replacement has to be in a checkpoint first
        if not partition.compaction.is_replacing:
            break
        yield None
    else:
        raise LogCleaningAborted(
            f"{partition.directory}: no checkpoint has the run that was replaced last"
        )
    new = partition.compaction.create_cleaned_segment(segment_run[0].base_offset)
    is_handed_over = False
    try:
        yield from _copy_survivors(partition, segment_run, new, cleaning, transactions)
        for each in transactions.pop_transactions_with_kept_marker():
            new.transaction_index.add_entry(each)
        _check_run_in_log(partition, segment_run)

        def start_replacement(done: Callable[[Exception | None], None]) -> None:
            partition.compaction.replace_segments(segment_run, new, first_dirty_offset, done)

        # From here on a journal may name the segment: dropping these steps must not remove it.
        is_handed_over = True
        yield AsyncOperation(start_replacement)
    finally:
        if not is_handed_over:
            partition.compaction.discard_cleaned_segment(new)


def _copy_survivors(
    partition: PartitionLog,
    segment_run: list[LogSegment],
    new_segment: LogSegment,
    cleaning: CleaningParameters,
    transactions: CleanedTransactionMetadata,
) -> Steps[None]:
    """Copy the batches that compaction leaves of a run to a new segment."""
    out = bytearray()
    headers: list[RecordBatch] = []

    def write_out() -> None:
        new_segment.file.write(out, new_segment.size)
        for each in headers:
            new_segment.index_batch_and_move_end(each.size, each.last_offset, each.max_timestamp_ms)
        out.clear()
        headers.clear()

    for segment in segment_run:
        read = 0
        for piece in _read_batches_in_pieces(partition, segment_run, segment):
            for at, batch in enumerate(piece):
                read += batch.size
                is_last = segment is segment_run[-1] and read == segment.size
                for kept in (
                    yield from compact_batch(batch, cleaning, transactions, is_last=is_last)
                ):
                    headers.append(parse_header(kept))
                    out += kept
                if len(out) >= _WRITE_BYTES:
                    yield None
                    write_out()
                if at % _BATCHES_A_STEP == 0:
                    yield None
            yield None
    write_out()


def _check_run_in_log(partition: PartitionLog, segment_run: Sequence[LogSegment]) -> None:
    """Raise LogCleaningAborted unless the run is still in the log and no damage was met."""
    if partition.damage is not None:
        raise LogCleaningAborted(f"{partition.directory} is damaged: {partition.damage}")
    closed = partition.compaction.list_closed_segments()
    try:
        at = closed.index(segment_run[0])
    except ValueError:
        raise LogCleaningAborted(f"{segment_run[0].path} is no longer in the log") from None
    if closed[at : at + len(segment_run)] != list(segment_run):
        raise LogCleaningAborted(
            f"the segments from {segment_run[0].path} on are no longer in the log"
        )
