"""What is done to the logs from time to time: old segments go, and what has come is saved.

Each round goes through all partitions in slices of about SLICE_MS, with a breath for everything
else in between. What takes long (flushing, unlinking) is done in the background by the partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from coordinator.clock import Timer
from coordinator.log.machine import Machine
from coordinator.log.partition import Partition

logger = logging.getLogger(__name__)

SLICE_MS = 2


class Upkeep:
    """`start` once the topics are loaded, `close` before they are closed."""

    def __init__(self, partitions: Callable[[], list[Partition]], machine: Machine) -> None:
        self._partitions = partitions
        self._machine = machine
        self._timers: dict[str, Timer] = {}

    def start(self, retention_check_interval_ms: int, checkpoint_interval_ms: int) -> None:
        self._later("retention", retention_check_interval_ms, Partition.remove_expired)
        self._later("checkpoint", checkpoint_interval_ms, _save_if_changed)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _later(self, name: str, interval_ms: int, act: Callable[[Partition], None]) -> None:
        def begin() -> None:
            go_on(iter(self._partitions()))

        def go_on(rest: Iterator[Partition]) -> None:
            clock = self._machine.clock
            until_ms = clock.monotonic_ms() + SLICE_MS
            for partition in rest:
                try:
                    act(partition)
                except Exception:  # one log that is damaged must not end the upkeep of all
                    logger.exception("%s: the %s isn't done now", partition.directory, name)
                if clock.monotonic_ms() >= until_ms:
                    wait(0, lambda: go_on(rest))
                    return
            wait(interval_ms, begin)

        def wait(delay_ms: int, call: Callable[[], None]) -> None:
            self._timers[name] = self._machine.scheduler.call_later(delay_ms, call)

        wait(interval_ms, begin)


def _save_if_changed(partition: Partition) -> None:
    if partition.has_unsaved:
        partition.save()
