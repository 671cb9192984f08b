"""Plant one bug in the queries of a worker, to see that the checker finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.queries.changelog_ends import ChangelogEnds, StandbyDistance
from streams.queries.local_stores import LocalStores
from streams.queries.routed_reads import RoutedReads
from streams.queries.store_provider import StateStoreProvider


def read_what_is_not_committed() -> None:
    """Read the stores that the stream threads write to: a dirty read."""
    open_stores = StateStoreProvider._open_stores

    def open_dirty(self: StateStoreProvider[Any], partitions: Any) -> Any:
        tasks = [task for task, _ in open_stores(self, partitions)]
        return [(task, task.stores.logged[self.spec.name].store) for task in tasks]

    StateStoreProvider._open_stores = open_dirty  # type: ignore[method-assign]


def take_one_partition_for_all() -> None:
    """Ask one partition, often the wrong one, and take its answer for that of all."""

    def read_once(self: RoutedReads, name: str, read: Any, terms: Any) -> Any:
        count = self.local.count_partitions(name)
        wrong = hash(str(read)) % count
        return self._read_partitions(name, read, {wrong}, terms)[0]

    RoutedReads._read_once = read_once  # type: ignore[method-assign]


def call_every_answer_new() -> None:
    """Say that active and standby answers are of this moment."""
    LocalStores._check_age = lambda self, has_read: 0.0  # type: ignore[method-assign]
    LocalStores._measure_pending_s = lambda self, pending_ms: 0.0  # type: ignore[method-assign]
    ChangelogEnds.measure_distance = (  # type: ignore[method-assign]
        lambda self, changelog, position, inputs: StandbyDistance(0, 0.0, {})
    )


PLANTS: dict[str, Callable[[], None]] = {
    "dirty-read": read_what_is_not_committed,
    "wrong-partition": take_one_partition_for_all,
    "stale-age": call_every_answer_new,
}
