"""Decide where a store is restored from in its changelog, and whether its content can be trusted.

A store says at which changelog offset it is, and goes on from there. It is rebuilt from the start
only if it may have missed writes, with the reason:

    what is found                                            why writes may be missing
    another topic id                                         deleted and made again: other offsets
    a position outside the changelog's range                 cut, or expired, below the position
    a last write longer ago than tombstones are kept,        deletions that it has not seen may have
    and offsets since then that it has not seen              been compacted away
    keys in the layout of another declaration, or damage     it can't be read

A store at the position that the committed offsets require, or above it, holds everything that was
committed: if it can be read it is trusted, whatever the changelog has lost and however old its last
write is.

A changelog that has lost what committed offsets rest on is refused, and nothing is touched: a store
rebuilt from it would not be what it was. That is so of one that ends too early, and of one that
begins above offset 0 where a store needs what was below: compaction alone never moves the
beginning. Windows and sessions expire, and their changelogs with them: there the loss is none if
all that is gone had expired by stream time (`ChangelogExpiry`). The changelog of a versioned store
is not compacted, and begins where the store was written again. One that was compacted, as by other
settings of the topic, may lack versions anywhere: it is taken only where stream time is within a
day of the wall clock. `changelog_out_of_range=earliest` accepts the loss instead.

The age of the last write is counted from `Checkpoint.written_ms`: a time at which the store had
seen all that was in the changelog below its position, and nothing above it had been there. A
tombstone above the position is younger than that, and compaction keeps it for `delete.retention.ms`
at least. A last write in the future shows that the clock was set back, and counts as too old. While
a store is restored its checkpoints keep the time at which the restore started; at the end they get
the time at which the end was fetched. Nothing has been missed where nothing was written, however
long ago: with transactions one offset past the position is the marker of the transaction that wrote
the last change. The functions are pure: they read and write nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from state.store_checkpoint import StoreCheckpoint
from streams.command_lines import format_command
from streams.common.topic_id_hashes import hash_topic_id_or_none
from streams.common.topic_partitions import Partition
from streams.errors import PositionRefused

_DAY_MS = 86_400_000
_DELETE_RETENTION_MS = _DAY_MS
"""Kafka's default of `delete.retention.ms`."""
_RETENTION_MARGIN = 0.1
"""The part of `delete.retention.ms` that is left as a margin: clocks differ, and a restore takes
time."""


class ChangelogRange(NamedTuple):
    """Describes the offsets of a changelog partition, from `start_offset` up to `end_offset`.

    The end is exclusive. `fetched_at_ms` is a wall-clock time before the broker was asked.
    `tombstone_retention_ms` is how long a tombstone is kept; None where the topic is not compacted,
    so that none is removed before its segment is.
    """

    partition: Partition
    start_offset: int
    end_offset: int
    topic_id: str
    tombstone_retention_ms: int | None
    fetched_at_ms: int


class ChangelogExpiry(NamedTuple):
    """Says which first records of a changelog may be gone, since what they wrote has expired.

    `is_declared`: the application declares settings of the topic by which records are removed.
    `is_windowed`: the store is one of windows or sessions; `is_versioned`: of versions, with a
    changelog of its own, which `is_rewritten` says it writes again. `retention_ms` is how long it
    keeps windows; 0 if unknown. `stream_time_ms` is that of the task at the commit; -1 if unknown.
    `expired_offset` is what the commit names; None if none: the wall clock may have cut records.
    """

    is_declared: bool = False
    is_windowed: bool = False
    is_versioned: bool = False
    is_rewritten: bool = False
    retention_ms: int = 0
    stream_time_ms: int = -1
    expired_offset: int | None = None

    def may_begin_at(self, start_offset: int, now_ms: int, *, is_compacted: bool = False) -> bool:
        """Return whether a changelog may begin at this offset without a loss.

        The wall clock removed what was a day older than the store's retention. All of it had
        expired in stream time too if that is within a day of the wall clock. `is_compacted`: the
        topic's settings let it be compacted, by which versions are lost behind any beginning.
        """
        if self.is_declared:
            return True
        if self.is_versioned and (is_compacted or self.expired_offset is None):
            return start_offset <= 0 and self._is_current(now_ms)
        if start_offset <= 0:
            return True
        if self.expired_offset is not None:
            return start_offset <= self.expired_offset
        return self.is_windowed and self._is_current(now_ms)

    def _is_current(self, now_ms: int) -> bool:
        """Return whether stream time is within a day of the wall clock."""
        return self.stream_time_ms >= 0 and now_ms - self.stream_time_ms <= _DAY_MS


NO_EXPIRY = ChangelogExpiry()
"""The expiry of a changelog whose beginning never moves."""


class RestoreStart(NamedTuple):
    """Says from which position a store is restored.

    `rebuild_reason` is why the store is cleared first; None if it is not. `since_ms` is what
    `Checkpoint.written_ms` is during the restore. `loss` says what the store will lack; it is empty
    where that is nothing.
    """

    position: int
    since_ms: int
    rebuild_reason: str | None = None
    loss: str = ""


def tombstone_retention_ms(settings: Mapping[str, str]) -> int | None:
    """Return for how many ms at least a topic with these settings keeps tombstones.

    Returns None where the topic is not compacted.
    """
    if "compact" not in settings.get("cleanup.policy", "compact"):
        return None
    return int(settings.get("delete.retention.ms", _DELETE_RETENTION_MS))


def find_restore_start(
    store_name: str,
    checkpoint: StoreCheckpoint | None,
    changelog: ChangelogRange,
    *,
    required_offset: int,
    is_transactional: bool,
    committed_id_hash: int | None = None,
    expiry: ChangelogExpiry = NO_EXPIRY,
    accepts_loss: bool = False,
    rebuild_reason: str = "",
) -> RestoreStart:
    """Return the changelog position from which a store is restored, and whether it is rebuilt.

    `required_offset` is the end of the changelog when the input offsets were committed, 0 if none
    were, and `committed_id_hash` the hash of the id that it had then, None if unknown. `expiry`
    says which first records may be gone; `accepts_loss`: others may be, too. `rebuild_reason` is
    why the store can't be used as it is; `checkpoint` is None then if nobody can read it.

    Raises: PositionRefused for a changelog that has lost what the committed offsets rest on.
    """
    partition, start, end, topic_id, kept_ms, now_ms = changelog
    remade = checkpoint is not None and checkpoint.topic_id != topic_id
    if checkpoint is not None and not checkpoint.topic_id and topic_id:
        return _find_unlogged_restore_start(store_name, changelog, accepts_loss=accepts_loss)
    if rebuild_reason and checkpoint is not None and not remade:
        # What it holds is known to be committed, whether or not an offset names it.
        required_offset = max(required_offset, checkpoint.committed_end)
    if required_offset > 0:
        _require_committed_changelog(
            store_name, changelog, required_offset, committed_id_hash, remade=remade
        )
    # Without committed offsets nothing rests on the changelog.
    is_cut = required_offset > 0 and not expiry.may_begin_at(
        start, now_ms, is_compacted=kept_ms is not None
    )
    loss = _describe_loss(store_name, changelog, required_offset, expiry) if is_cut else ""
    if rebuild_reason:
        kept = _format_store_advice(rebuild_reason, is_readable=checkpoint is not None)
        return _check_loss(RestoreStart(start, now_ms, rebuild_reason, loss), accepts_loss, kept)
    if checkpoint is None:
        return _check_loss(RestoreStart(start, now_ms, loss=loss), accepts_loss)
    position, written_ms = checkpoint.position, checkpoint.written_ms
    if not remade and 0 < required_offset <= position <= end:
        return RestoreStart(max(position, start), now_ms)
    unseen = end - position - is_transactional
    if remade:
        reason = f"changelog {partition} {_describe_recreated_changelog(end)}"
    elif position > end or (position < start and not (required_offset and position)):
        reason = f"it is at {position} and {partition} has {start} to {end}"
    elif unseen > 0 and written_ms and _may_have_missed_tombstones(now_ms - written_ms, kept_ms):
        reason = (
            f"it was written {(now_ms - written_ms) // 1000} s ago, {partition} has gone on from "
            f"{position} to {end}, and keeps deletions for {(kept_ms or 0) // 1000} s "
            "(delete.retention.ms): some may be gone"
        )
    elif position < start and expiry.is_rewritten and not is_cut:
        # What was deleted and has expired is not written again.
        reason = f"it is at {position} of {partition}, and was written again from {start} on"
    elif position < start or (loss and expiry.is_versioned):
        at = max(position, start)
        return _check_loss(RestoreStart(at, written_ms, loss=loss), accepts_loss)
    else:
        # A `written_ms` of 0 means that the age is unknown; such a store is trusted.
        return RestoreStart(position, written_ms if unseen > 0 else now_ms)
    return _check_loss(RestoreStart(start, now_ms, reason, loss), accepts_loss)


def _require_committed_changelog(
    store_name: str,
    changelog: ChangelogRange,
    required_offset: int,
    committed_id_hash: int | None,
    *,
    remade: bool,
) -> None:
    """Raise PositionRefused if the changelog is not that of the commit, or has lost its end.

    `remade`: the store in the state directory was kept in one of another id.
    """
    partition, end = changelog.partition, changelog.end_offset
    reset = format_command("group reset")
    id_hash = None if committed_id_hash is None else hash_topic_id_or_none(changelog.topic_id)
    if remade and (id_hash is None or id_hash != committed_id_hash):
        # Without offsets, which move on: whoever waits for the end of it says it once.
        raise PositionRefused(
            f"changelog {partition} {_describe_recreated_changelog(end)}: it is not the one that "
            f"store {store_name!r} in the state directory was kept in, and offsets are committed, "
            f"whose records it does not have. The store is left as it is. Start over with {reset}, "
            "which also goes on with a reset that was interrupted. If a reset was ended on another "
            "machine, the store here is older: remove the application's state directory on this "
            "machine alone"
        )
    if id_hash is not None and id_hash != committed_id_hash:
        raise PositionRefused(
            f"changelog {partition} of store {store_name!r} is another topic of the same name: it "
            f"{_describe_recreated_changelog(end)} since offsets were committed, when it stood at "
            f"{required_offset}. What is there now does not have what was committed: start over "
            f"with {reset}, which also goes on with a reset that was interrupted"
        )
    if required_offset > end:
        raise PositionRefused(
            f"changelog {partition} of store {store_name!r} ends at {end}, and "
            f"offsets were committed when it stood at {required_offset}: it was deleted, made "
            f"again or cut. Bring it back, or start over with {reset}, which also goes on with a "
            "reset that was interrupted: it deletes the group's offsets, the internal topics and "
            "the state directory"
        )


def _describe_recreated_changelog(end_offset: int) -> str:
    """Describe what happened to a changelog that has another id, judged by its end offset."""
    if end_offset > 0:
        return "was deleted and made again"
    # The group's leader makes it before stores are restored: most often nobody else has.
    return "was deleted, and made again empty by a worker's start or by hand"


def _check_loss(
    restore_start: RestoreStart,
    accepts_loss: bool,
    kept: str = "Start the worker whose state directory still has the store",
) -> RestoreStart:
    """Return `restore_start`, or raise PositionRefused if it loses records and that isn't accepted.

    `kept` says where there may still be a copy.
    """
    if restore_start.loss and not accepts_loss:
        raise PositionRefused(
            f"{restore_start.loss}. {kept}; or bring the records back; or accept the loss once "
            "with changelog_out_of_range=earliest; or start over with "
            f"{format_command('group reset')}"
        )
    return restore_start


def _find_unlogged_restore_start(
    store_name: str, changelog: ChangelogRange, *, accepts_loss: bool
) -> RestoreStart:
    """Return the restore start of a store that was kept without a changelog until now.

    Raises: PositionRefused if it may not be emptied for that.
    """
    reason = "it was kept without a changelog until now"
    loss = (
        f"changelog {changelog.partition} does not have what is in store {store_name!r}, which was "
        "kept without one until now"
    )
    start = RestoreStart(changelog.start_offset, changelog.fetched_at_ms, reason, loss)
    return _check_loss(start, accepts_loss, kept=_format_store_advice(reason, is_readable=True))


def _format_store_advice(rebuild_reason: str, *, is_readable: bool) -> str:
    """Format the advice on an unusable store: it is left as it is, and which worker to start."""
    who = "a worker whose state directory has another copy"
    if is_readable:
        who = f"the version of the application that wrote it, which goes on with it, or {who}"
    return (
        f"The store in the state directory can't be used ({rebuild_reason}), and is left as it is: "
        f"start {who}"
    )


def _describe_loss(
    store_name: str, changelog: ChangelogRange, required_offset: int, expiry: ChangelogExpiry
) -> str:
    """Return a sentence that says which records of a changelog are gone, and what they held."""
    where = f"changelog {changelog.partition} of store {store_name!r}"
    if expiry.is_versioned and changelog.start_offset <= 0:
        return (
            f"{where} was compacted by the wall clock, as far as its settings tell, and may lack "
            "versions that are within the store's history: stream time was "
            f"{_format_time(expiry.stream_time_ms)}"
        )
    cause = "DeleteRecords, or a cleanup.policy with delete"
    held = ""
    if expiry.is_windowed:
        cause = "retention.ms or DeleteRecords, by the wall clock"
        time_ms = expiry.stream_time_ms
        since = _format_time(max(time_ms - expiry.retention_ms, 0) if time_ms >= 0 else -1)
        held = f", with windows that may still be open (those that have started after {since}): "
        held += f"stream time was {_format_time(time_ms)}"
    return (
        f"{where} begins at {changelog.start_offset}, and offsets were committed when it stood at "
        f"{required_offset}: its records 0 to {changelog.start_offset - 1} were removed ({cause})"
        f"{held}"
    )


def _format_time(time_ms: int) -> str:
    """Return a time in ms as text; "unknown" for a negative one."""
    if time_ms < 0:
        return "unknown"
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")


def find_source_restore_start(
    store_name: str,
    checkpoint: StoreCheckpoint | None,
    source: ChangelogRange,
    accepts_loss: bool = False,
    rebuild_reason: str = "",
    first_offset: int = 0,
) -> RestoreStart:
    """Return from which position of the table's own topic a table's store is restored.

    The end of `source` is the committed offset, the first one that was processed `first_offset`. A
    store at that end goes on, also where the topic has expired below it. Others may begin where it
    lost records, if it `accepts_loss`. `rebuild_reason`: the store can't be used as it is.

    Raises: PositionRefused for a topic that has lost records which the table has read.
    """
    partition, start, end, topic_id, kept_ms, now_ms = source
    loss = ""
    if start > first_offset and end > 0:
        loss = (
            f"topic {partition}, which restores store {store_name!r} in the place of a changelog, "
            f"begins at {start}, and the committed offset is {end}: its records {first_offset} to "
            f"{start - 1} were removed (a cleanup.policy with delete, or DeleteRecords), with the "
            "rows of keys that have no later record"
        )
    start = max(start, first_offset)  # what is before it is in no row
    if rebuild_reason:
        kept = _format_store_advice(rebuild_reason, is_readable=checkpoint is not None)
        return _check_loss(RestoreStart(start, now_ms, rebuild_reason, loss), accepts_loss, kept)
    if checkpoint is None:
        return _check_loss(RestoreStart(start, now_ms, loss=loss), accepts_loss)
    position, written_ms = checkpoint.position, checkpoint.written_ms
    if checkpoint.topic_id != topic_id:
        loss, reason = "", f"{partition} was made again, or is not what restored the store"
    elif position == end:
        return RestoreStart(position, written_ms)
    elif position > end:
        reason = f"it is at {position} of {partition}, and the committed offset is {end}"
    elif position < start:
        reason = f"it is at {position} and {partition} begins at {start}"
    elif written_ms and _may_have_missed_tombstones(now_ms - written_ms, kept_ms):
        reason = (
            f"it was written {(now_ms - written_ms) // 1000} s ago, and {partition} keeps "
            f"deletions for {(kept_ms or 0) // 1000} s (delete.retention.ms): some may be gone"
        )
    else:
        return RestoreStart(position, written_ms)
    return _check_loss(RestoreStart(start, now_ms, reason, loss), accepts_loss)


def _may_have_missed_tombstones(age_ms: int, retention_ms: int | None) -> bool:
    """Return whether tombstones may be gone that came after a store was written.

    `age_ms` is how long ago that was by the worker's clock. If it was in the future by more than
    the margin, the clock was set back, and the age is not known.
    """
    if retention_ms is not None and age_ms < -retention_ms * _RETENTION_MARGIN:
        return True
    return are_tombstones_expired(age_ms, retention_ms, _RETENTION_MARGIN)


def are_tombstones_expired(age_ms: int, retention_ms: int | None, margin: float = 0.0) -> bool:
    """Return whether tombstones of an age in ms may have been removed by log compaction."""
    return retention_ms is not None and age_ms >= retention_ms * (1 - margin)
