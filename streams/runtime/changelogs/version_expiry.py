"""Decide when a versioned store writes its changelog again, and what lies below has expired.

The changelog of a versioned store is compacted by no broker: compaction goes by the wall clock,
keeps the last record of a key, and a late version may be that. So the store compacts it itself: all
versions on disk are written again, some with each commit (`VersionedStore.begin_rewrite`). With the
commit of the last ones everything below the position at which that began has expired: it is
committed as the **expired offset** in the offsets' metadata, and only then is it deleted
(`streams.runtime.threads.changelog_purge`). The next rewrite begins when as many records have
followed as were written again, and some more: so at most two records are written again for each
that is written, however the store grows. Where it begins is committed as the mark offset. A rewrite
that a rollback or a move ends begins anew.

A store whose commit names no expired offset, as one of a tool, is written again at once:
nothing tells what its changelog has lost.
"""

from __future__ import annotations

from state.versioned import VersionedStore
from streams.runtime.changelogs.window_expiry import WindowExpiry

REWRITE_RECORDS_MIN = 10_000
"""At least how many records follow a rewrite before the next one begins."""
_FACTOR = 2


def begin_changelog_rewrite_if_due(
    store: VersionedStore[object], position: int, expiry: WindowExpiry
) -> None:
    """Begin to write a store's changelog again if that has grown enough since it was written.

    `position` is that of the store's committed state in the changelog.
    """
    if store.is_rewriting:
        return
    if expiry.expired_offset is None or position >= expiry.mark_offset:
        store.begin_rewrite(position)


def advance_version_expiry(expiry: WindowExpiry, store: VersionedStore[object]) -> None:
    """Advance the expired offset, and the mark, if the running transaction ends a rewrite.

    A rollback reads what was committed again.
    """
    ended = store.ended_rewrite
    if ended is not None:
        expiry.expired_offset = max(expiry.expired_offset or 0, ended.changelog_offset)
        count = _FACTOR * ended.entry_count + REWRITE_RECORDS_MIN
        expiry.mark_offset = ended.changelog_offset + count
