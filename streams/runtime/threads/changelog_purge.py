"""Delete the records of changelogs that have expired: of windows, and of versions written again.

Deleted is what lies below the expired offset that was committed
(`streams.runtime.changelogs.window_expiry`, `streams.runtime.changelogs.version_expiry`), and below
that of every kept cut: a cut's offsets have the metadata of its moment. With `cut_retention_ms`
records are deleted so much later. It runs beside the stream thread, as the purge of repartition
topics does. Without the right to delete, one warning says so and the changelogs grow: no state
depends on it. Kafka Streams lets the wall clock delete windows (`retention.ms`), and compact
versions (`min.compaction.lag.ms`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from streams.common.host import Host, SpawnedThread
from streams.common.topic_partitions import Partition
from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.runtime.access.resource_names import cut_group_prefix, is_cut_group
from streams.runtime.changelogs.window_expiry import ExpiredRecords, name_expiry_entries
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.runtime.threads.repartition_purge import FetchGroupOffsets

log = logging.getLogger(__name__)


class PurgeTiming(NamedTuple):
    """Says how often expired records are deleted, and how long after they have expired, in ms."""

    interval_ms: int
    cut_retention_ms: int = 0


class ChangelogPurger:
    """Deletes expired records of the changelogs that the tasks of one thread write.

    `check_groups_listed` raises AuthorizationError if groups of these names would not be listed.
    """

    def __init__(
        self,
        application_id: str,
        admin: AdminClient,
        fetch_group_offsets: FetchGroupOffsets,
        check_groups_listed: Callable[[Sequence[str]], object],
        timing: PurgeTiming,
        host: Host,
    ) -> None:
        self._application_id = application_id
        self._admin = admin
        self._fetch_group_offsets = fetch_group_offsets
        self._check_groups_listed = check_groups_listed
        self._interval_s = timing.interval_ms / 1000
        self._cut_retention_s = timing.cut_retention_ms / 1000
        self._host = host
        self._waiting: list[tuple[float, ExpiredRecords]] = []
        """Expired records, each with the monotonic time from which on they may be deleted."""
        self._due_at_s = host.monotonic_s()
        self._purge_thread: SpawnedThread | None = None
        self._is_refused = False

    def purge_if_due(self, expired: Iterable[ExpiredRecords]) -> None:
        """Note changelog records that a commit has expired, and start their deletion if due."""
        if self._is_refused:
            return
        now_s = self._host.monotonic_s()
        self._waiting += [(now_s + self._cut_retention_s, each) for each in expired]
        if not self._waiting or now_s < self._due_at_s:
            return
        if self._purge_thread is not None and self._purge_thread.is_alive():
            return
        self._due_at_s = now_s + self._interval_s
        due = [each for from_s, each in self._waiting if from_s <= now_s]
        self._waiting = [each for each in self._waiting if each[0] > now_s]
        if due:
            self._purge_thread = self._host.spawn_thread(
                "changelog-purge", lambda: self.purge_once(due)
            )

    def purge_once(self, expired: Sequence[ExpiredRecords]) -> None:
        """Delete expired records, unless a kept cut needs them; what fails is only logged.

        Records that are not deleted now go with the next ones of their changelog that expire.
        """
        try:
            prefix = cut_group_prefix(self._application_id)
            self._check_groups_listed((prefix, f"{prefix}-"))
            to_delete = self._limit_to_cuts(expired)
            if to_delete:
                self._admin.delete_records(to_delete)
        except AuthorizationError as error:
            self._is_refused = True
            log.warning("expired records stay in changelogs, which grow: %s", error)
        except (ConnectionLost, OutcomeUnknown, TaskMigrated, StreamsError) as error:
            log.info("expired records are deleted from changelogs later: %s", error)

    def _limit_to_cuts(self, expired: Sequence[ExpiredRecords]) -> dict[Partition, int]:
        """Return up to which offset each changelog may be deleted, by all kept cuts."""
        limits = {each.changelog: each.offset for each in expired}
        for group in self._admin.list_groups():
            if not is_cut_group(group, self._application_id):
                continue
            cut = self._fetch_group_offsets(group, [p for each in expired for p in each.inputs])
            for each in expired:
                entry = name_expiry_entries(each.store).expired_offset
                held = [
                    decode_metadata(cut.offsets[p].metadata).find_entry(entry) or 0
                    for p in each.inputs
                    if p in cut.offsets
                ]
                limit = min(held, default=0)
                limits[each.changelog] = min(limits[each.changelog], limit)
        return {changelog: offset for changelog, offset in limits.items() if offset > 0}
