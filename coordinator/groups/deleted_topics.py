"""Delete the offsets of deleted topics in slices, and free the topics' names after that.

All topics that are deleted while one sweep of the groups is going on share the next. A shard that
is being loaded deletes them when that is done. `topics.json` has the names until all shards have,
so that a broker that was killed in between begins again when it starts: else a topic made under
such a name would have its groups go on at offsets of the old one. That holds for `kill -9`, not for
a loss of power: the list is flushed, the tombstones are as the log's settings say.

A log that refuses a tombstone (a full disk) is asked again every `RETRY_MS`, and the name is not
free until then. A damaged shard holds no name: its offsets aren't served. `topics.json` notes for
it what was deleted meanwhile, and it deletes that once it can be loaded, before it serves anything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from coordinator.clock import Scheduler, Timer
from coordinator.groups.offsets import GroupOffsets
from coordinator.shard.shard import BrokenInvariant
from coordinator.shard.slices import Sliced, SlicedExecutor

logger = logging.getLogger(__name__)

RETRY_MS = 1_000


class DeletedTopicCleanup:
    """Deletes the offsets of deleted topics, and calls the callbacks that wait for that."""

    def __init__(
        self,
        offsets: GroupOffsets,
        sliced_executor: SlicedExecutor,
        scheduler: Scheduler,
        on_forgotten: Callable[[str], None],
    ) -> None:
        """Create the cleanup.

        `on_forgotten` is called with each topic's name when no group has offsets of it any more.
        """
        self._offsets = offsets
        self._sliced_executor = sliced_executor
        self._scheduler = scheduler
        self._on_forgotten = on_forgotten
        self._queued_names: set[str] = set()  # for the next sweep
        self._retry_timer: Timer | None = None
        offsets.on_deleted_topics = self.forget_offsets_of_topics
        self._is_running = False
        self._waiting_callbacks: list[Callable[[Exception | None], None]] = []

    def forget_offsets_of_topics(self, topic_names: Iterable[str]) -> None:
        """Delete the offsets of these topics, in slices; a few are deleted before this returns."""
        self._queued_names.update(topic_names)
        if self._queued_names and not self._is_running:
            self._is_running = True
            self._sliced_executor.run_in_slices(self._forget_queued_topics(), self._finish_sweeps)

    def notify_when_idle(self, callback: Callable[[Exception | None], None]) -> None:
        """Call back when nothing is left to delete, with None or the error that ended the work.

        The call comes at once if nothing is being deleted.
        """
        if self._is_running:
            self._waiting_callbacks.append(callback)
        else:
            callback(None)

    def _forget_queued_topics(self) -> Sliced[None]:
        while self._queued_names:
            names, self._queued_names = self._queued_names, set()
            yield from self._offsets.forget_topics_in_slices(names)
            self.free_deleted_names(names)

    def free_deleted_names(self, swept_names: Iterable[str]) -> None:
        """Free the names of deleted topics that no group has offsets of any more."""
        for name in sorted(swept_names):
            if name not in self._queued_names and not self._offsets.has_offsets_to_forget(name):
                self._on_forgotten(name)

    def _retry_refused_tombstones(self) -> None:
        """Forget the offsets of the deleted topics whose tombstones were refused before."""
        self._retry_timer = None
        self.forget_offsets_of_topics(self._offsets.pop_topics_with_refused_tombstones())

    def cancel_retry(self) -> None:
        """Cancel the next retry."""
        if self._retry_timer is not None:
            self._retry_timer.cancel()

    def _finish_sweeps(self, outcome: Exception | None) -> None:
        """Schedule the retry of refused topics, and call the waiting callbacks with the outcome."""
        self._is_running = False
        if self._retry_timer is None and self._offsets.has_topics_with_refused_tombstones():
            self._retry_timer = self._scheduler.call_later(RETRY_MS, self._retry_refused_tombstones)
        callbacks, self._waiting_callbacks = self._waiting_callbacks, []
        if outcome is not None:
            logger.error(
                "offsets of deleted topics could not be forgotten: the topics' names are not free"
                " until the broker is started again: %r",
                outcome,
            )
            if not callbacks:
                raise outcome
        for callback in callbacks:
            callback(outcome)
        if isinstance(outcome, BrokenInvariant):
            raise outcome  # The broker has to stop, whether a client still waits or not.
