"""Cleans one log, from its first reading to the last segment put in place, in steps.

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

from coordinator.log.batch import Batch, batches, parse_header
from coordinator.log.cleaner.mapping import take_up
from coordinator.log.cleaner.offset_map import OffsetMap
from coordinator.log.cleaner.section import Section, runs
from coordinator.log.cleaner.steps import Started, Steps
from coordinator.log.cleaner.survivors import Cleaning, LastOfProducer, surviving
from coordinator.log.cleaner.transactions import CleanedTransactions
from coordinator.log.partition import Partition
from coordinator.log.segment import Segment

_READ_BYTES = 64 << 10
_WRITE_BYTES = 64 << 10
_BATCHES_A_STEP = 32
_CHECKPOINT_STEPS = 50_000  # more than half a minute where steps are run in slices


class NotNow(Exception):
    """Reports that a log can't be cleaned at this time.

    Segments that were being cleaned are no longer in it, a replacement before is in no checkpoint
    yet, or damage was met, and all of it has to stay. Kafka: `LogCleaningAbortedException`.
    """


def cleaned(partition: Partition, section: Section, map_bytes: int, now_ms: int) -> Steps[int]:
    """Clean a section of a log in steps, and return the offset up to which it is clean then.

    Raises: LogCleaningAborted; `CorruptBatch`, ValueError or IndexError where something in the log
    is no batch or no record; OSError.
    """
    offsets = OffsetMap(map_bytes)
    offsets.end_offset = section.first_dirty_offset
    aborted = partition.aborted_in(section.first_dirty_offset, section.end_offset)
    transactions = CleanedTransactions(aborted)
    ends = _ends(section.segments, section.end_offset)
    for segment, end in zip(section.segments, ends, strict=True):
        if end <= section.first_dirty_offset:
            continue
        if not (
            yield from _map(partition, segment, offsets, transactions, section.first_dirty_offset)
        ):
            break
        offsets.end_offset = end
    settings = partition.settings
    chosen = [each for each in section.segments if each.base_offset < offsets.end_offset]
    end = ends[len(chosen) - 1]
    transactions = CleanedTransactions(partition.aborted_in(chosen[0].base_offset, end))
    all_runs = runs(chosen, end, settings)
    for run in all_runs:
        cleaning = Cleaning(
            offsets=offsets,
            now_ms=now_ms,
            delete_retention_ms=settings.delete_retention_ms,
            max_message_bytes=settings.max_message_bytes,
            producers=_last_of_producers(partition),
        )
        is_last = run is all_runs[-1]
        clean_to = offsets.end_offset if is_last else section.first_dirty_offset
        yield from _replace(partition, run, cleaning, transactions, clean_to)
    yield from offsets.emptied()
    return offsets.end_offset


def _ends(segments: Sequence[Segment], end_offset: int) -> list[int]:
    """Return the offset at which each segment ends, the last one at `end_offset`."""
    return [*(each.base_offset for each in segments[1:]), end_offset]


def _last_of_producers(partition: Partition) -> dict[int, LastOfProducer]:
    """Return the last data offset and the epoch of each producer of the partition."""
    found = {}
    for producer_id, known, _ in partition.producers.items():
        last = known.batches[-1] if known.batches else None
        found[producer_id] = LastOfProducer(last.last_offset if last else None, known.epoch)
    return found


def _pieces(
    partition: Partition, run: Sequence[Segment], segment: Segment
) -> Iterator[Sequence[Batch]]:
    """Yield all batches of a segment of the run, some at a time.

    Raises: LogCleaningAborted if the run has left the log since the piece before: then its files
    may be closed and gone.
    """
    position = 0
    while position < segment.size:
        _check_in_log(partition, run)
        data = segment.read(position, _READ_BYTES)
        yield list(batches(data))
        position += len(data)


def _map(
    partition: Partition,
    segment: Segment,
    offsets: OffsetMap,
    transactions: CleanedTransactions,
    first_dirty_offset: int,
) -> Steps[bool]:
    """Add the keys of a segment's dirty batches to the offset map; return False if it is full."""
    for piece in _pieces(partition, [segment], segment):
        for at, batch in enumerate(piece):
            if batch.last_offset < first_dirty_offset:
                continue
            if not (yield from take_up(batch, offsets, transactions, first_dirty_offset)):
                return False
            if at % _BATCHES_A_STEP == 0:
                yield None
        yield None
    return True


def _replace(
    partition: Partition,
    run: list[Segment],
    cleaning: Cleaning,
    transactions: CleanedTransactions,
    first_dirty_offset: int,
) -> Steps[None]:
    """Copy the surviving records of a run to a new segment, and replace the run by it.

    The log is clean up to `first_dirty_offset` then. Raises: LogCleaningAborted.
    """
    for _ in range(_CHECKPOINT_STEPS):  # the last replacement has to be in a checkpoint first
        if not partition.is_replacing:
            break
        yield None
    else:
        raise NotNow(f"{partition.directory}: no checkpoint has the run that was replaced last")
    new = partition.cleaned(run[0].base_offset)
    is_handed_over = False
    try:
        yield from _copy(partition, run, new, cleaning, transactions)
        for each in transactions.take_kept():
            new.aborted.add(each)
        _check_in_log(partition, run)

        def start_replacement(done: Callable[[Exception | None], None]) -> None:
            partition.replace(run, new, first_dirty_offset, done)

        # From here on a journal may name the segment: dropping these steps must not remove it.
        is_handed_over = True
        yield Started(start_replacement)
    finally:
        if not is_handed_over:
            partition.discard_cleaned(new)


def _copy(
    partition: Partition,
    run: list[Segment],
    new: Segment,
    cleaning: Cleaning,
    transactions: CleanedTransactions,
) -> Steps[None]:
    """Copy the batches that compaction leaves of a run to a new segment."""
    out = bytearray()
    headers: list[Batch] = []

    def write_out() -> None:
        new.write(out)
        for each in headers:
            new.noted(each.size, each.last_offset, each.max_timestamp_ms)
        out.clear()
        headers.clear()

    for segment in run:
        read = 0
        for piece in _pieces(partition, run, segment):
            for at, batch in enumerate(piece):
                read += batch.size
                is_last = segment is run[-1] and read == segment.size
                for kept in (yield from surviving(batch, cleaning, transactions, is_last=is_last)):
                    headers.append(parse_header(kept))
                    out += kept
                if len(out) >= _WRITE_BYTES:
                    yield None
                    write_out()
                if at % _BATCHES_A_STEP == 0:
                    yield None
            yield None
    write_out()


def _check_in_log(partition: Partition, run: Sequence[Segment]) -> None:
    """Raise LogCleaningAborted unless the run is still in the log and no damage was met."""
    if partition.damage is not None:
        raise NotNow(f"{partition.directory} is damaged: {partition.damage}")
    closed = partition.closed_segments()
    try:
        at = closed.index(run[0])
    except ValueError:
        raise NotNow(f"{run[0].path} is no longer in the log") from None
    if closed[at : at + len(run)] != list(run):
        raise NotNow(f"the segments from {run[0].path} on are no longer in the log")
