"""Define bugs to be planted in a worker.

Most remove a guard that keeps a zombie's work out; one lets a promotion ignore its standby.

They are put in from outside, by replacing a function of the process; the product has no switch for
any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.runtime.clients import Admin
from streams.runtime.restoring import changelog_reader
from streams.runtime.tasks import task_creator
from streams.runtime.tasks.offset_proof import UNCHECKED
from streams.runtime.threads import commit, loop, member_creation
from streams.runtime.threads.standby_tasks import StandbyTasks


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put what `make` makes of the function `name` in its place, until the process ends."""
    setattr(owner, name, make(getattr(owner, name)))


def generation_not_sent() -> None:
    """Send offsets into the transaction without member and generation, so that nobody is fenced."""

    def group_metadata(original: Any) -> Any:
        return lambda group, *_: original(group, -1, "", None)

    replace(loop, "encode_group_metadata", group_metadata)


def punctuation_commits_no_offsets() -> None:
    """Send no offsets when no input has advanced, so that nobody looks at the generation."""
    replace(commit, "collect_committable_offsets", lambda _: lambda tasks: [])


def departed_transactions_left_open() -> None:
    """Leave transactions of threads that are no members open, as a leader may that can't abort."""
    replace(member_creation, "abort_departed_transactions", lambda _: lambda *_: [])


def restore_stops_at_the_last_stable_offset() -> None:
    """Restore stores without what an open transaction has written, and wait for nobody."""
    departed_transactions_left_open()

    def begin(original: Any) -> Any:
        return lambda *arguments, required_offset, **rest: original(
            *arguments, required_offset=0, **rest
        )

    replace(Admin, "fetch_latest_offsets", lambda _: Admin.fetch_last_stable_offsets)
    replace(changelog_reader, "find_restore_start", begin)


def departed_transactions_and_offsets_left_alone() -> None:
    """Leave open transactions of departed threads, and take offsets whatever the stores hold.

    A worker refuses to start on what a zombie without offsets has committed.
    """
    departed_transactions_left_open()
    _take_offsets_as_they_are()


def unproven_restore_stops_at_the_last_stable_offset() -> None:
    """Restore stores up to the last stable offset, and take offsets whatever the stores hold."""
    restore_stops_at_the_last_stable_offset()
    _take_offsets_as_they_are()


def offsets_are_one_record_behind() -> None:
    """Send offsets that don't count the last record, so that a task processes it again later."""

    def collect(original: Any) -> Any:
        return lambda tasks: [
            (partition, at._replace(offset=max(at.offset - 1, 0)))
            for partition, at in original(tasks)
        ]

    replace(commit, "collect_committable_offsets", collect)
    _take_offsets_as_they_are()


def _take_offsets_as_they_are() -> None:
    replace(task_creator, "prove_offsets", lambda _: lambda *_, **__: UNCHECKED)


def promotions_begin_with_nothing() -> None:
    """Empty the stores of each standby that becomes active, and restore them from scratch."""

    def promote(original: Any) -> Any:
        def promote_tasks(standby: StandbyTasks, active: Any) -> Any:
            promoted = original(standby, active)
            standby._restorer.run_between_batches(lambda: None)  # it gives them back
            for task in promoted.values():
                for logged in task.stores.logged.values():
                    logged.clear_store()
            return promoted

        return promote_tasks

    replace(StandbyTasks, "promote_tasks", promote)


BUGS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        generation_not_sent,
        punctuation_commits_no_offsets,
        departed_transactions_left_open,
        restore_stops_at_the_last_stable_offset,
        departed_transactions_and_offsets_left_alone,
        unproven_restore_stops_at_the_last_stable_offset,
        offsets_are_one_record_behind,
        promotions_begin_with_nothing,
    )
}
