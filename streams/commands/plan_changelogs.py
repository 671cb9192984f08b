"""Tell for `millrace plan` which stores a start could not rebuild from their changelogs.

A store is rebuilt on a machine that has none of it, or where its declaration no longer fits. A
changelog that was cut, or deleted and made again, can't do that, and the start refuses. It is
decided where a restore decides it (`find_restore_start`), by the committed offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from state.memory import MemoryDisk
from streams.commands.offset_evidence import TaskInputs
from streams.commands.restorable_tasks import list_restorable_tasks
from streams.common.topic_partitions import CommittedOffsets, Partition
from streams.errors import ConfigError, OutcomeUnknown, PositionRefused, StreamsError
from streams.membership.connection import ConnectionLost
from streams.runtime.assigning.internal_topics import find_changelog_expiry
from streams.runtime.changelogs.changelog import (
    ChangelogRange,
    find_restore_start,
    tombstone_retention_ms,
)
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.tasks.task_stores import TaskStores
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology


class ChangelogReview(NamedTuple):
    """Says which stores can't be rebuilt, by name with the start's message; or why it is unknown.

    `losses` are what stores would lack that `changelog_out_of_range` lets a start go on without.
    """

    refusals: Mapping[str, str] = {}
    losses: Mapping[str, str] = {}
    unknown: str = ""

    def list_lines(self, rebuilt_stores: Collection[str] = ()) -> Iterator[str]:
        """Yield a line for each store that can't be rebuilt; none where every store can.

        `rebuilt_stores` are those that a new version is known to rebuild.
        """
        if self is NOT_REVIEWED:
            if rebuilt_stores:
                yield NOT_ASKED
        elif self.unknown:
            what = "whether stores can be rebuilt from their changelogs"
            yield f"{what} is not known: {self.unknown}"
        for store, refusal in self.refusals.items():
            yield f"refused: a start that has to rebuild store {store!r} ends with this: {refusal}"
        for store, loss in self.losses.items():
            yield f"a start that has to rebuild store {store!r} goes on without records: {loss}"


NOT_REVIEWED = ChangelogReview()
"""The review where no broker was named."""
NOT_ASKED = (
    "whether changelogs still have everything that these stores are rebuilt from is not known "
    "without the broker: name it with --bootstrap-servers"
)
"""The line of it where stores are rebuilt."""


def find_unrestorable_stores(
    topology: Topology,
    config: StreamsConfig,
    admin: AdminClient,
    fetch_committed: Callable[[], CommittedOffsets],
    partition_counts: Mapping[str, int],
    now_ms: int,
) -> ChangelogReview:
    """Return which stores of an application a start could not rebuild from their changelogs.

    `fetch_committed` fetches all offsets of the group, `partition_counts` are the topics'
    partitions. Of a task whose topics are missing nothing is said: that is told with the topics.
    """
    tasks: list[TaskInputs] = []
    with suppress(ConfigError):
        tasks += list_restorable_tasks(topology, partition_counts)
    changelogs = [changelog for task in tasks for changelog in task.changelogs.values()]
    if not changelogs:
        return ChangelogReview()
    try:
        committed = fetch_committed()
        ranges = _fetch_ranges(admin, changelogs, now_ms)
    except (ConnectionLost, OutcomeUnknown, StreamsError) as error:
        return ChangelogReview(unknown=str(error))
    refusals: dict[str, str] = {}
    losses: dict[str, str] = {}
    for task in tasks:
        _add_restore_obstacles_of_task(task, config, committed, ranges, refusals, losses)
    return ChangelogReview(refusals, losses)


def _fetch_ranges(
    admin: AdminClient, changelogs: Collection[Partition], now_ms: int
) -> dict[Partition, ChangelogRange]:
    partitions, topics = list(changelogs), sorted({each.topic for each in changelogs})
    ends = admin.fetch_latest_offsets(partitions)
    starts = admin.fetch_earliest_offsets(partitions)
    ids, settings = admin.fetch_topic_ids(topics), admin.fetch_topic_settings(topics)
    kept = {topic: tombstone_retention_ms(settings[topic]) for topic in topics}
    return {
        p: ChangelogRange(p, starts[p], ends[p], ids[p.topic], kept[p.topic], now_ms)
        for p in partitions
    }


def _add_restore_obstacles_of_task(
    task: TaskInputs,
    config: StreamsConfig,
    committed: CommittedOffsets,
    ranges: Mapping[Partition, ChangelogRange],
    refusals: dict[str, str],
    losses: dict[str, str],
) -> None:
    """Add the refusals and losses of a start that has to restore all stores of a task."""
    specs = {spec.name: spec for spec in task.subtopology.stores}
    logged = {
        name: LoggedStore(
            open_store(specs[name], MemoryDisk()),
            *(changelog, "", 0),
            expiry=find_changelog_expiry(specs[name]),
        )
        for name, changelog in task.changelogs.items()
    }
    stores = TaskStores(task.name, logged)
    own = {p: committed.offsets[p] for p in task.partitions if p in committed.offsets}
    required = stores.find_committed_positions_and_note_ids(own)
    stores.note_committed_expiry(own)
    for name, store in logged.items():
        try:
            start = find_restore_start(
                *(name, None, ranges[store.changelog]),
                required_offset=required.get(store.changelog, 0),
                committed_id_hash=store.committed_id_hash,
                is_transactional=config.exactly_once,
                expiry=store.expiry,
                accepts_loss=config.accepts_changelog_loss,
            )
        except PositionRefused as refusal:
            refusals.setdefault(name, str(refusal))
        else:
            if start.loss:
                losses.setdefault(name, start.loss)
