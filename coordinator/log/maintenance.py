"""Maintain the logs from time to time: remove expired segments and save checkpoints.

Each round goes through all partitions in slices of about SLICE_MS, and lets other work run in
between. Long calls (flushing, unlinking) are done in the background by the partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from coordinator.clock import Timer
from coordinator.log.host import BrokerHost
from coordinator.log.partition import PartitionLog

logger = logging.getLogger(__name__)

SLICE_MS = 2


class LogMaintenance:
    """Runs retention and checkpoints for all partitions, each by a timer of its own.

    `start_timers` is called once the topics are loaded, `cancel_timers` before they are closed.
    """

    def __init__(self, list_partitions: Callable[[], list[PartitionLog]], host: BrokerHost) -> None:
        self._partitions = list_partitions
        self._host = host
        self._timers: dict[str, Timer] = {}

    def start_timers(self, retention_check_interval_ms: int, checkpoint_interval_ms: int) -> None:
        """Start the timers of retention and of checkpoints."""
        self._repeat_for_partitions(
            "retention", retention_check_interval_ms, PartitionLog.remove_expired_segments
        )
        self._repeat_for_partitions(
            "checkpoint", checkpoint_interval_ms, _save_in_background_if_changed
        )

    def cancel_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _repeat_for_partitions(
        self, task_name: str, interval_ms: int, maintain: Callable[[PartitionLog], None]
    ) -> None:
        """Call `maintain` for every partition, once in each interval, in slices."""

        def start_round() -> None:
            continue_round(iter(self._partitions()))

        def continue_round(rest: Iterator[PartitionLog]) -> None:
            clock = self._host.clock
            until_ms = clock.monotonic_ms() + SLICE_MS
            for partition in rest:
                try:
                    maintain(partition)
                except Exception:  # one damaged log must not end the maintenance of all
                    logger.exception("%s: the %s isn't done now", partition.directory, task_name)
                if clock.monotonic_ms() >= until_ms:
                    schedule_call(0, lambda: continue_round(rest))
                    return
            schedule_call(interval_ms, start_round)

        def schedule_call(delay_ms: int, call: Callable[[], None]) -> None:
            self._timers[task_name] = self._host.scheduler.call_later(delay_ms, call)

        schedule_call(interval_ms, start_round)


def _save_in_background_if_changed(partition: PartitionLog) -> None:
    if partition.checkpoints.has_unsaved:
        partition.checkpoints.save_checkpoint_in_background()
