"""Restore: stores catch up with their changelogs before their task processes anything.

A store says at which changelog offset it is and is caught up from there; it is rebuilt from the
start only if it could lie, and the log says why. A changelog is read, committed records only, until
the position has reached the high watermark: this waits for a transaction that is still open, since
what it wrote may yet be committed. Judged by position and not by record count, so that markers and
aborted records at the end hang nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping

from state.store import ChangelogEntry, Checkpoint
from streams.errors import StreamsError
from streams.positions import Partition
from streams.runtime.clients import Admin, DataConsumer
from streams.runtime.task import LoggedStore

log = logging.getLogger(__name__)

_RECORDS_MAX = 10_000
_WAIT_S = 0.05
_REPORT_EVERY_S = 5.0


def restore(
    stores: Collection[LoggedStore],
    consumer: DataConsumer,
    admin: Admin,
    *,
    required: Mapping[Partition, int],
    interrupted: Callable[[], bool],
) -> int | None:
    """Catch all `stores` up. `required`: the position of each changelog that the inputs' offsets
    were committed with. Returns how many records were replayed; None if interrupted, and then
    each store keeps what it has got so far and goes on from there another time."""
    by_partition = {logged.changelog: logged for logged in stores}
    ends = admin.latest(list(by_partition))
    starts = admin.earliest(list(by_partition))
    behind = {}
    for partition, logged in by_partition.items():
        start, end = starts[partition], ends[partition]
        logged.position = _begin_at(logged, start, end, required.get(partition, 0))
        if logged.position < ends[partition]:
            behind[partition] = logged.position
    if not behind:
        return 0
    consumer.add(behind)
    try:
        return _catch_up(by_partition, set(behind), ends, consumer, interrupted)
    finally:
        consumer.remove(behind)


def _catch_up(
    stores: dict[Partition, LoggedStore],
    behind: set[Partition],
    ends: dict[Partition, int],
    consumer: DataConsumer,
    interrupted: Callable[[], bool],
) -> int | None:
    replayed = 0
    report_at = time.monotonic() + _REPORT_EVERY_S
    while behind:
        if interrupted():
            return None
        batches: dict[Partition, list[ChangelogEntry]] = {}
        for message in consumer.take(_RECORDS_MAX, _WAIT_S):
            entry = (message.key(), message.value(), message.timestamp()[1])
            partition = Partition(message.topic(), message.partition())
            batches.setdefault(partition, []).append(entry)
            replayed += 1
        positions = consumer.positions(behind)
        for partition in list(behind):
            position = positions.get(partition, stores[partition].position)
            if position > stores[partition].position:
                logged = stores[partition]
                logged.position = position
                checkpoint = Checkpoint(position, logged.topic_id)
                logged.store.replay(batches.get(partition, ()), checkpoint)
            if position >= ends[partition]:
                behind.discard(partition)
        if time.monotonic() > report_at:
            report_at = time.monotonic() + _REPORT_EVERY_S
            left = {str(p): ends[p] - stores[p].position for p in sorted(behind)}
            log.info("restoring, %d records replayed, offsets left: %s", replayed, left)
    return replayed


def _begin_at(logged: LoggedStore, start: int, end: int, required: int) -> int:
    """Where the store goes on. A store that could lie is emptied, and the log says why.

    Raises StreamsError, and touches nothing, where the changelog has lost what the committed
    offsets rest on: a store rebuilt from it would not be what it was.
    """
    checkpoint = logged.store.checkpoint()
    remade = checkpoint is not None and checkpoint.topic_id != logged.topic_id
    if required > end or (remade and required > 0):
        raise StreamsError(
            f"changelog {logged.changelog} of store {logged.store.name!r} ends at {end}, and "
            f"offsets were committed when it stood at {required}: it was deleted, made again or "
            "cut. Bring it back; or start over: delete the group's offsets, the internal topics "
            "and the state directory"
        )
    if checkpoint is None:
        return start
    if remade:
        reason = f"changelog {logged.changelog} was deleted and made again"
    elif not start <= checkpoint.position <= end:
        reason = f"it is at {checkpoint.position} and {logged.changelog} has {start} to {end}"
    else:
        return checkpoint.position
    log.warning("store %r is rebuilt from its changelog: %s", logged.store.name, reason)
    logged.store.clear()
    return start
