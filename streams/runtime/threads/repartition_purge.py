"""Delete consumed records of repartition topics, up to what may still be read.

A repartition topic keeps its records until they are deleted (`retention.ms` -1): no time-out may
take what has not been consumed. Every `repartition_purge_interval_ms` this deletes what lies below

    the committed offset of the task that reads the partition, and
    the offset of the same partition in every kept cut.

A kept cut is what a group named `<application.id>-cut`, or `<application.id>-cut-` and anything,
has committed: whoever reads the application as of a moment (the Spark bridge) copies the
application's committed offsets into such a group, and deletes the group when it is done. A
partition of which the group says nothing is kept whole. The committed offsets are taken before the
groups are looked at, so a cut that is made meanwhile of the newest offsets loses nothing; who makes
one of older offsets looks, once they are committed, whether each repartition partition still begins
below them.

It runs beside the stream thread, since it asks several brokers; a purge that fails is tried again
with the next interval, and one that is not allowed ends the thread. Source:
TaskManager.maybePurgeCommittedRecords.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from streams.common.host import Host, SpawnedThread
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.runtime.access.resource_names import cut_group_prefix, is_cut_group
from streams.runtime.clients.interfaces import AdminClient

log = logging.getLogger(__name__)

FetchGroupOffsets = Callable[[str, Collection[Partition]], CommittedOffsets]
"""Fetches the offsets that a group has committed. Raises ConnectionLost or StreamsError."""


class RepartitionPurger:
    """Deletes the records of repartition topics that the tasks of one thread have consumed.

    `check_groups_listed` raises AuthorizationError if groups of these names would not be listed,
    and ConnectionLost if that is not known now.
    """

    def __init__(
        self,
        application_id: str,
        topics: Collection[str],
        admin: AdminClient,
        fetch_group_offsets: FetchGroupOffsets,
        *,
        check_groups_listed: Callable[[Sequence[str]], object],
        interval_ms: int,
        host: Host,
    ) -> None:
        self._application_id = application_id
        self._topics = frozenset(topics)
        self._admin = admin
        self._fetch_group_offsets = fetch_group_offsets
        self._check_groups_listed = check_groups_listed
        self._interval_s = interval_ms / 1000
        self._host = host
        self._committed_offsets: dict[Partition, int] = {}
        self._purged_offsets: dict[Partition, int] = {}
        self._due_at_s = host.monotonic_s() + self._interval_s
        self._purge_thread: SpawnedThread | None = None
        self._refusal: AuthorizationError | None = None

    def note_offsets_and_purge_if_due(
        self, offsets: Iterable[tuple[Partition, OffsetAndMetadata]]
    ) -> None:
        """Note committed offsets, and delete the repartition records before them if that is due.

        Raises: AuthorizationError if the last purge was not allowed: topics would grow for ever.
        """
        if not self._topics:
            return
        if self._refusal is not None:
            raise self._refusal
        for partition, held in offsets:
            if partition.topic in self._topics:
                self._committed_offsets[partition] = held.offset
        if self._host.monotonic_s() < self._due_at_s:
            return
        if self._purge_thread is not None and self._purge_thread.is_alive():
            return
        self._due_at_s = self._host.monotonic_s() + self._interval_s
        # The offsets are taken before the cuts are listed: a cut that is made meanwhile has these
        # offsets or newer ones. Only those of this interval are purged: their topics exist.
        to_purge, self._committed_offsets = self._committed_offsets, {}
        self._purge_thread = self._host.spawn_thread(
            "repartition-purge", lambda: self.purge_once(to_purge)
        )

    def purge_once(self, committed: Mapping[Partition, int]) -> None:
        """Delete the records below both the committed offsets and every kept consistent cut.

        A missing right fails the next commit. Any other error is only logged: no task depends on
        the purge.
        """
        try:
            # Brokers leave out of a list what may not be described: a cut would look like none.
            self._check_cuts_listed()
            end_offsets = self._limit_to_cuts(committed)
            to_delete = {
                p: end for p, end in end_offsets.items() if end > self._purged_offsets.get(p, 0)
            }
            if to_delete:
                self._admin.delete_records(to_delete)
                self._purged_offsets |= to_delete
        except AuthorizationError as error:
            log.error("repartition topics can't be purged: %s", error)
            self._refusal = error
        except (ConnectionLost, OutcomeUnknown, TaskMigrated, StreamsError) as error:
            log.info("repartition topics are purged later: %s", error)

    def _check_cuts_listed(self) -> None:
        """Raise an error unless groups of all names that cuts may have are listed."""
        prefix = cut_group_prefix(self._application_id)
        self._check_groups_listed((prefix, f"{prefix}-"))

    def _limit_to_cuts(self, end_offsets: Mapping[Partition, int]) -> Mapping[Partition, int]:
        """Return the end offsets, each lowered to the lowest offset of the kept consistent cuts."""
        for group in self._admin.list_groups():
            if is_cut_group(group, self._application_id):
                cut = self._fetch_group_offsets(group, end_offsets)
                end_offsets = {
                    partition: min(end, cut.offsets[partition].offset)
                    for partition, end in end_offsets.items()
                    if partition in cut.offsets
                }
        return end_offsets
