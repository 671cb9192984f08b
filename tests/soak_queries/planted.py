"""Plant one bug in the queries of a worker, to see that the checker finds it.

A bug of reads is planted twice: in those of one row that are answered at once, as most look-ups of
a key are, and in all others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from streams.graph.nodes import StoreSpec
from streams.queries import store_provider
from streams.queries.local_stores import LocalStores
from streams.queries.row_reads import RowReads
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_reads import StoreRead, read_rows
from streams.runtime.tasks.task import Task


def read_what_is_not_committed() -> None:
    """Read the stores that the stream threads write to: a dirty read."""

    def read_now(task: Task, read: partial[Any], attempts_s: float) -> Any:
        open_view, read_store = read.args
        spec = open_view.args[0]
        return read_store(task.stores.logged[spec.name].store), task.committed_positions

    def read_row_now(
        self: RowReads, subtopology: int, partition: int, spec: StoreSpec, read: StoreRead
    ) -> StoreAnswer | None:
        answer = read_row(self, subtopology, partition, spec, read)
        name = f"{subtopology}_{partition}"
        task = next((each for each in self._list_tasks() if each.name == name), None)
        if answer is None or task is None:
            return answer
        return answer._replace(rows=read_rows(spec, task.stores.logged[spec.name].store, read))

    read_row = RowReads.read_row
    setattr(store_provider, "read_at_one_commit", read_now)  # noqa: B010
    RowReads.read_row = read_row_now  # type: ignore[method-assign]


def take_one_partition_for_all() -> None:
    """Take one partition for all that there are, and each key to be in it."""
    LocalStores.count_partitions = lambda self, name, locations=None: 1  # type: ignore[method-assign]
    LocalStores.find_partition = lambda self, name, key, locations=None: 0  # type: ignore[method-assign]


def call_every_answer_new() -> None:
    """Say that active and standby answers are of this moment."""
    read, read_row = LocalStores.read, RowReads.read_row

    def read_as_new(self: LocalStores, *arguments: Any, **terms: Any) -> StoreAnswer:
        return read(self, *arguments, **terms)._replace(age_s=0.0)

    def read_row_as_new(self: RowReads, *arguments: Any, **terms: Any) -> StoreAnswer | None:
        answer = read_row(self, *arguments, **terms)
        return None if answer is None else answer._replace(age_s=0.0)

    LocalStores.read = read_as_new  # type: ignore[method-assign]
    RowReads.read_row = read_row_as_new  # type: ignore[method-assign]


PLANTS: dict[str, Callable[[], None]] = {
    "dirty-read": read_what_is_not_committed,
    "wrong-partition": take_one_partition_for_all,
    "stale-age": call_every_answer_new,
}
