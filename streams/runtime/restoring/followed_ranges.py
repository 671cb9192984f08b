"""Find out from where and how far the stores of standby tasks follow their changelogs.

A changelog that does not exist, which its owner may yet create, keeps no other from being followed.
A table's own topic, which takes the place of a changelog, is followed up to the group's committed
offset only: what lies above it is still to be processed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection
from functools import partial

from state.store_checkpoint import StoreCheckpoint
from streams.common.host import Host
from streams.common.topic_id_hashes import hash_topic_id_or_none
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, PositionRefused
from streams.membership.connection import ConnectionLost
from streams.runtime.changelogs.changelog import (
    ChangelogRange,
    RestoreStart,
    find_restore_start,
    find_source_restore_start,
)
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.runtime.restoring.changelog_ranges import ChangelogRangeFetcher
from streams.runtime.restoring.restoration import Restorable
from streams.topology.compatibility import format_names

log = logging.getLogger(__name__)


class FollowedRangeFetcher:
    """Fetches the ranges of changelogs, each up to its store's limit, and waits for no answer.

    `name` names the standbys in messages. `fetch_committed_offsets` returns the group's;
    `is_transactional`: whether changelogs are written in transactions. `accepts_loss`: a store is
    also filled from a changelog whose first records are gone.
    """

    def __init__(
        self,
        name: str,
        admin: AdminClient,
        host: Host,
        fetch_committed_offsets: Callable[[list[Partition]], CommittedOffsets],
        *,
        is_transactional: bool,
        accepts_loss: bool = False,
    ) -> None:
        self._admin = admin
        self._accepts_loss = accepts_loss
        self._ranges = ChangelogRangeFetcher(name, admin, host, timeout_ms=math.inf)
        self._fetch_committed_offsets = fetch_committed_offsets
        self._is_transactional = is_transactional
        self._last_problems: dict[str, str] = {}

    def fetch_ranges(self, stores: Collection[LoggedStore]) -> dict[Partition, ChangelogRange]:
        """Fetch the range of each store's changelog; empty if nobody answers.

        Left out is a changelog that does not exist, and a table's topic whose committed offset an
        open transaction may move now.
        Raises: AuthorizationError for a changelog that may not be read.
        """
        try:
            existing = self._leave_out_missing(stores)
        except OutcomeUnknown as error:
            self.log_problem("topics", str(error))
            return {}
        ranges = self._ranges.fetch_ranges(existing) or {}
        sources = {each.changelog: each for each in existing if each.is_source_topic}
        if not ranges or not sources:
            return ranges
        committed = self._fetch_offsets(list(sources))
        for partition, logged in sources.items():
            known = ranges.pop(partition)
            if committed is not None and partition not in committed.pending:
                held = committed.offsets.get(partition)
                limit = 0 if held is None else held.offset
                ranges[partition] = known._replace(end_offset=min(known.end_offset, limit))
                logged.first_source_offset = _find_first_offset(partition, held, known.topic_id)
        return ranges

    def find_follow_start(
        self,
        task: Restorable,
        logged_store: LoggedStore,
        checkpoint: StoreCheckpoint | None,
        changelog: ChangelogRange,
    ) -> RestoreStart | None:
        """Return the offset from which a store follows its changelog; None to leave it as it is.

        A changelog that has lost what committed offsets rest on is refused, as when a task is
        restored: the store may be the one copy of what was lost. It is also left as it is while
        those offsets can't be known.
        """
        start: RestoreStart | None
        try:
            if logged_store.is_source_topic:
                start = find_source_restore_start(
                    *(logged_store.store.name, checkpoint, changelog, self._accepts_loss),
                    rebuild_reason=logged_store.rebuild_reason,
                    first_offset=logged_store.first_source_offset,
                )
            else:
                start = self._find_own_changelog_start(task, logged_store, checkpoint, changelog)
        except PositionRefused as error:
            self.log_problem(str(changelog.partition), str(error))
            return None
        if start is not None and start.loss:
            self.log_problem(str(changelog.partition), start.loss)
        return start

    def _find_own_changelog_start(
        self,
        task: Restorable,
        logged_store: LoggedStore,
        checkpoint: StoreCheckpoint | None,
        changelog: ChangelogRange,
    ) -> RestoreStart | None:
        """Return the offset from which a store follows its own changelog; None if not known yet.

        Raises: PositionRefused for a changelog that has lost something.
        """
        find_follow_start = partial(
            find_restore_start,
            logged_store.store.name,
            checkpoint,
            is_transactional=self._is_transactional,
        )
        # The changelog of versions may lack some anywhere, if its settings let it be compacted.
        if not (logged_store.expiry.is_versioned or logged_store.rebuild_reason):
            start = find_follow_start(changelog, required_offset=0)
            own_position = 0 if checkpoint is None else checkpoint.position
            if start.rebuild_reason is None and start.position == own_position:
                return start
        committed = self._fetch_offsets(list(task.partitions))
        if committed is None or committed.pending:
            return None
        required = task.stores.find_committed_positions_and_note_ids(committed.offsets)
        task.stores.note_committed_expiry(committed.offsets)
        required_offset = required.get(changelog.partition, 0)
        if required_offset > changelog.end_offset:
            # The end was fetched before the offsets, and the owner may have committed in between.
            ranges = self._ranges.fetch_ranges([logged_store])
            if ranges is None:
                return None
            changelog = ranges[changelog.partition]
        return find_follow_start(
            changelog,
            required_offset=required_offset,
            committed_id_hash=logged_store.committed_id_hash,
            expiry=logged_store.expiry,
            accepts_loss=self._accepts_loss,
            rebuild_reason=logged_store.rebuild_reason,
        )

    def log_problem(self, subject: str, problem: str) -> None:
        """Log why standbys wait, unless it was the last thing that was logged of this subject."""
        if problem != self._last_problems.get(subject):
            self._last_problems[subject] = problem
            log.warning("standby tasks wait: %s", problem)

    def _leave_out_missing(self, stores: Collection[LoggedStore]) -> list[LoggedStore]:
        """Return the stores whose changelogs exist, and log which do not.

        A topic that may not be described is not listed either.
        """
        counts = self._admin.fetch_partition_counts()
        missing = {
            s.changelog for s in stores if s.changelog.number >= counts.get(s.changelog.topic, 0)
        }
        if missing:
            topics = {partition.topic for partition in missing}
            self._admin.check_topic_rights(dict.fromkeys(sorted(topics), ("Read",)))
            self.log_problem("missing", f"changelog {format_names(topics)} does not exist")
        return [logged for logged in stores if logged.changelog not in missing]

    def _fetch_offsets(self, partitions: list[Partition]) -> CommittedOffsets | None:
        """Fetch committed offsets; None if nobody answers."""
        try:
            return self._fetch_committed_offsets(partitions)
        except (ConnectionLost, OutcomeUnknown) as error:
            self.log_problem("offsets", f"committed offsets: {error}")
            return None


def _find_first_offset(partition: Partition, held: OffsetAndMetadata | None, topic_id: str) -> int:
    """Return where the group began to read a table's topic, by its committed offset; 0 if unknown.

    `topic_id` is the topic's: one of another topic of the name is none of this one.
    """
    metadata = decode_metadata("" if held is None else held.metadata)
    is_former = metadata.topic_id_hash(partition.topic) not in (
        None,
        hash_topic_id_or_none(topic_id),
    )
    return 0 if metadata.first_start is None or is_former else metadata.first_start.offset
