"""Where a store goes on in its changelog, and whether what it holds can be trusted: pure decisions.

A store says at which changelog offset it is, and goes on from there. It is rebuilt from the start
only if it could lie, with the reason:

    what is found                                            why it could lie
    another topic id                                         deleted and made again: other offsets
    a position outside the changelog's range                 cut, or expired, below the position
    a last write longer ago than tombstones are kept,        deletions that it has not seen may have
    and offsets since then that it has not seen              been compacted away

A changelog that has lost what committed offsets rest on is refused, and nothing is touched: a store
rebuilt from it would not be what it was.

How long ago is reckoned from `Checkpoint.written_ms`: a time at which the store had seen all that
was in the changelog below its position, and nothing above it had been there. A tombstone above the
position is younger than that, and compaction keeps it for `delete.retention.ms` at least. A store
on its way keeps the time at which it set out; one that arrives gets the time at which its end was
asked for. Nothing has been missed where nothing was written, however long ago: with transactions
one offset past the position is the marker of the transaction that brought it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from state.store import Checkpoint
from streams.errors import StreamsError
from streams.positions import Partition

_DELETE_RETENTION_MS = 86_400_000
"""Kafka's default of `delete.retention.ms`."""
_MARGIN = 0.1
"""Of `delete.retention.ms`: clocks differ, and catching up takes its time."""


class Changelog(NamedTuple):
    """A changelog partition as the broker has it: offsets from `start` up to, and without, `end`.

    `asked_ms` is the wall-clock time before it was asked. `tombstones_ms` is how long a tombstone
    is kept; None where the topic is not compacted, so that none goes before its segment does.
    """

    partition: Partition
    start: int
    end: int
    topic_id: str
    tombstones_ms: int | None
    asked_ms: int


class Begin(NamedTuple):
    """Where a store goes on. `rebuilt`: why it is emptied first; None if it is not.

    `since_ms` is what `Checkpoint.written_ms` is on the way.
    """

    position: int
    since_ms: int
    rebuilt: str | None = None


def tombstones_ms(settings: Mapping[str, str]) -> int | None:
    """How long a topic of these settings keeps tombstones at least."""
    if "compact" not in settings.get("cleanup.policy", "compact"):
        return None
    return int(settings.get("delete.retention.ms", _DELETE_RETENTION_MS))


def begin_at(
    store: str,
    checkpoint: Checkpoint | None,
    changelog: Changelog,
    *,
    required: int,
    transactions: bool,
) -> Begin:
    """Where `store` goes on. `required`: where the changelog stood when the inputs' offsets were
    committed, 0 if none were. Raises StreamsError for a changelog that has lost what they rest on.
    """
    partition, start, end, topic_id, kept_ms, now_ms = changelog
    remade = checkpoint is not None and checkpoint.topic_id != topic_id
    if required > end or (remade and required > 0):
        raise StreamsError(
            f"changelog {partition} of store {store!r} ends at {end}, and "
            f"offsets were committed when it stood at {required}: it was deleted, made again or "
            "cut. Bring it back; or start over: delete the group's offsets, the internal topics "
            "and the state directory"
        )
    if checkpoint is None:
        return Begin(start, now_ms)
    position, written_ms = checkpoint.position, checkpoint.written_ms
    unseen = end - position - transactions
    if remade:
        reason = f"changelog {partition} was deleted and made again"
    elif not start <= position <= end:
        reason = f"it is at {position} and {partition} has {start} to {end}"
    elif unseen > 0 and written_ms and is_over(now_ms - written_ms, kept_ms, _MARGIN):
        reason = (
            f"it was written {(now_ms - written_ms) // 1000} s ago, {partition} has gone on from "
            f"{position} to {end}, and keeps deletions for {(kept_ms or 0) // 1000} s "
            "(delete.retention.ms): some may be gone"
        )
    else:
        # Nobody noted the time (0): it is as old as it was, which can't be known any more.
        return Begin(position, written_ms)
    return Begin(start, now_ms, reason)


def begin_in_source(checkpoint: Checkpoint | None, source: Changelog) -> Begin:
    """Where the store of a table goes on in the table's own topic, which ends at the committed
    offset as far as the store is concerned: what is above is still to be processed.

    A store that is where the offset is goes on, also where the topic has expired below it.
    """
    partition, start, end, topic_id, kept_ms, now_ms = source
    if checkpoint is None:
        return Begin(start, now_ms)
    position, written_ms = checkpoint.position, checkpoint.written_ms
    if checkpoint.topic_id != topic_id:
        reason = f"{partition} was made again, or was not what the store was restored from"
    elif position == end:
        return Begin(position, written_ms)
    elif position > end:
        reason = f"it is at {position} of {partition}, and the committed offset is {end}"
    elif position < start:
        reason = f"it is at {position} and {partition} begins at {start}"
    elif written_ms and is_over(now_ms - written_ms, kept_ms, _MARGIN):
        reason = (
            f"it was written {(now_ms - written_ms) // 1000} s ago, and {partition} keeps "
            f"deletions for {(kept_ms or 0) // 1000} s (delete.retention.ms): some may be gone"
        )
    else:
        return Begin(position, written_ms)
    return Begin(start, now_ms, reason)


def is_over(age_ms: int, kept_ms: int | None, margin: float = 0.0) -> bool:
    """Whether tombstones that are so old may be gone."""
    return kept_ms is not None and age_ms >= kept_ms * (1 - margin)
