"""Run the log cleaner: find the dirtiest log, clean it, and look again, on the broker's loop.

    waiting    log.cleaner.backoff.ms after a look that found nothing to do
    looking    at all partitions: which of those worth it has the largest dirty share of its bytes
    cleaning   one log, in slices of SLICE_MS with rests of _REST_MS between them, so that produce
               and fetch never wait for more than a slice; flushing a file and compressing a large
               batch happen on another thread

A thread of its own would not be better: Python's threads take turns of 5 ms, and a request would
wait for several of them. A log that can't be cleaned (a batch that holds no records) is left alone
until the broker starts again; where the disk failed it is tried again when there is nothing else to
clean, so that it keeps no other log waiting.
Source: LogCleaner, LogCleanerManager.grabFilthiestCompactedLog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from coordinator.clock import Timer
from coordinator.config import BrokerConfig
from coordinator.log.cleaner.cleanable_section import CleanableSection, find_cleanable_section
from coordinator.log.cleaner.cleaning import LogCleaningAborted, clean_log
from coordinator.log.cleaner.counters import CleanerCounters
from coordinator.log.cleaner.offset_checkpoint import (
    FILE_NAME,
    TopicPartition,
    read_first_dirty_offsets,
    write_first_dirty_offsets,
)
from coordinator.log.cleaner.steps import AsyncOperation, BackgroundCall, Steps, run_to_completion
from coordinator.log.host import BrokerHost
from coordinator.log.partition import PartitionLog
from coordinator.log.topics import BrokerTopic, TopicRegistry

CleaningCount: TypeAlias = int

logger = logging.getLogger(__name__)

SLICE_MS = 1
_REST_MS = 2
# In a simulation, where time stands still, a slice ends after so many steps.
_STEPS_A_SLICE = 16
_PARTITIONS_A_STEP = 64


class LogCleaner:
    """Compacts the logs of a broker, one after the other.

    `start_cleaning` is called once they are loaded, `close` before they are closed. Kafka:
    `LogCleaner`.
    """

    def __init__(
        self,
        topics: TopicRegistry,
        directory: Path,
        host: BrokerHost,
        get_config: Callable[[], BrokerConfig],
        is_loaded: Callable[[], bool] = lambda: True,
    ) -> None:
        """Prepare the cleaner; nothing is cleaned before `is_loaded` returns True.

        It tells whether the coordinators have read their logs: a record that they can't read may be
        the one that replaces an older one of its key.
        """
        self._topics = topics
        self._directory = directory
        self._host = host
        self._config = get_config
        self._is_loaded = is_loaded
        self.counters = CleanerCounters()
        self._uncleanable: set[PartitionLog] = set()
        self._put_off: set[PartitionLog] = set()  # until there is nothing else to clean
        self._current: PartitionLog | None = None
        self._steps: Steps[bool] | None = None
        self._timer: Timer | None = None
        topics.when_deleted.append(self._forget_topic)

    def start_cleaning(self) -> None:
        """Write the offsets for other tools if they are outdated, and start the timer."""
        if (
            read_first_dirty_offsets(self._host.disk, self._directory)
            != self._collect_first_dirty_offsets()
        ):
            self._write_offset_checkpoint()
        self._reschedule_call(self._backoff_ms, self._begin_round)

    def close(self) -> None:
        """Stop at once: a cleaned segment that isn't in place yet is dropped."""
        if self._timer is not None:
            self._timer.cancel()
        self._abandon_current_cleaning()

    def clean_regardless_of_ratio(self, partition: PartitionLog | None = None) -> CleaningCount:
        """Clean one log or all of them without a pause, whatever the dirty ratio; return the count.

        It is for tests, and only where background work is done at once.
        """
        count = 0
        for each in [partition] if partition else self._topics.list_all_partitions():
            while self._is_cleanable(each):
                section = self._find_section(each)
                if not section.dirty_bytes:
                    break
                if not run_to_completion(self._try_clean_partition(each, section)):
                    break
                count += 1
        return count

    # One cleaning after the other

    def _begin_round(self) -> None:
        """Start the steps that look for a log to clean, and run their first slice."""
        self._steps = self._try_clean_dirtiest_log()
        self._run_slice()

    def _try_clean_dirtiest_log(self) -> Steps[bool]:
        """Find the dirtiest log and clean it; return whether one was cleaned.

        If one was, there may be another.
        """
        if not self._config().log_cleaner_enable or not self._is_loaded():
            return False
        found: tuple[PartitionLog, CleanableSection] | None = None
        dirty_ratio_max = 0.0
        for at, partition in enumerate(self._topics.list_all_partitions()):
            if self._is_cleanable(partition) and partition not in self._put_off:
                try:
                    section = self._find_section(partition)
                except OSError as error:
                    logger.warning("%s is not looked at now: %s", partition.directory, error)
                    continue
                except Exception:
                    logger.exception("%s is not cleaned any more", partition.directory)
                    self._uncleanable.add(partition)
                    continue
                dirty_ratio_max = max(dirty_ratio_max, section.ratio)
                if section.is_worth_cleaning(partition.settings) and (
                    found is None or section.ratio > found[1].ratio
                ):
                    found = partition, section
            if at % _PARTITIONS_A_STEP == 0:
                yield None
        self.counters.dirty_ratio_max = dirty_ratio_max
        self.counters.uncleanable = len(self._uncleanable)
        if found is None:
            self._put_off.clear()
            return False
        self._current = found[0]
        try:
            return (yield from self._try_clean_partition(*found))
        finally:
            self._current = None

    def _is_cleanable(self, partition: PartitionLog) -> bool:
        """Return whether a log is compacted, undamaged and not known to be uncleanable."""
        return (
            partition.settings.is_compacted
            and partition.damage is None
            and partition not in self._uncleanable
        )

    def _find_section(self, partition: PartitionLog) -> CleanableSection:
        """Find the part of a log that can be cleaned now."""
        return find_cleanable_section(partition, self._host.clock.now_ms())

    def _try_clean_partition(
        self, partition: PartitionLog, section: CleanableSection
    ) -> Steps[bool]:
        """Clean a section of a log, and return whether no step of the cleaning failed.

        A log that fails is put off, or not cleaned any more.
        """
        name = (partition.topic, partition.index)
        map_bytes = self._config().log_cleaner_dedupe_buffer_size
        before = sum(segment.size for segment in section.segments)
        try:
            now_ms = self._host.clock.now_ms()
            end_offset = yield from clean_log(partition, section, map_bytes, now_ms)
        except (LogCleaningAborted, OSError) as error:
            logger.warning("%s-%d is cleaned another time: %s", *name, error)
            self._put_off.add(partition)
            self.counters.failed += 1
            return False
        except Exception:  # CorruptBatch, ValueError, IndexError, or anything unforeseen
            logger.exception("%s-%d is not cleaned any more", *name)
            self._uncleanable.add(partition)
            self.counters.failed += 1
            return False
        after = sum(segment.size for segment in partition.compaction.list_closed_segments())
        self.counters.cleaned += 1
        self.counters.bytes_removed += max(0, before - after)
        dirty = (section.first_dirty_offset, end_offset)
        logger.info("%s-%d, dirty from %d to %d: %d bytes, now %d", *name, *dirty, before, after)
        self._write_offset_checkpoint()
        return True

    def _forget_topic(self, topic: BrokerTopic) -> None:
        """Stop cleaning a topic that was deleted, and drop what is stored about its logs."""
        if self._current in topic.partitions:
            self._abandon_current_cleaning()
            self._reschedule_call(0, self._begin_round)
        self._uncleanable.difference_update(topic.partitions)
        self._put_off.difference_update(topic.partitions)
        if any(each.compaction.first_dirty_offset for each in topic.partitions):
            self._write_offset_checkpoint()

    def _collect_first_dirty_offsets(self) -> dict[TopicPartition, int]:
        """Collect the first dirty offset of each partition that was ever cleaned."""
        return {
            (each.topic, each.index): each.compaction.first_dirty_offset
            for each in self._topics.list_all_partitions()
            if each.compaction.first_dirty_offset
        }

    def _write_offset_checkpoint(self) -> None:
        """Write the first dirty offsets to a file for other tools, on another thread.

        If that fails, the file is outdated until the next log is cleaned or the broker starts
        again.
        """
        content = self._collect_first_dirty_offsets()
        self._host.background.run_in_background(
            lambda: write_first_dirty_offsets(self._host.disk, self._directory, content),
            _log_if_failed,
        )

    @property
    def _backoff_ms(self) -> int:
        """Return how long to wait after a look that found nothing to clean."""
        return max(_REST_MS, self._config().log_cleaner_backoff_ms)

    # Slices

    def _run_slice(self, error: Exception | None = None) -> None:
        """Run a slice, and count the time that it takes."""
        begin_ns = self._host.clock.monotonic_ns()
        self._run_steps(error)
        self.counters.busy_ns += self._host.clock.monotonic_ns() - begin_ns

    def _run_steps(self, error: Exception | None) -> None:
        """Run the current steps for one slice, then rest, or wait for what they wait for.

        An `error` of the call that they waited for is raised in them.
        """
        steps = self._steps
        if steps is None:
            return
        clock = self._host.clock
        until_ms = clock.monotonic_ms() + SLICE_MS
        try:
            for _ in range(_STEPS_A_SLICE):
                step = next(steps) if error is None else steps.throw(error)
                error = None
                match step:
                    case None:
                        if clock.monotonic_ms() >= until_ms:
                            break
                    case AsyncOperation(start):
                        start(partial(self._resume_steps, steps))
                        return
                    case BackgroundCall(call):
                        self._host.background.run_in_background(
                            call, partial(self._resume_steps, steps)
                        )
                        return
        except StopIteration as end:
            self._steps = None
            self._reschedule_call(_REST_MS if end.value else self._backoff_ms, self._begin_round)
            return
        self._reschedule_call(_REST_MS, self._run_slice)

    def _resume_steps(self, steps: Steps[bool], error: Exception | None) -> None:
        """Resume the cleaning steps after a background call has ended, unless they were dropped."""
        if steps is self._steps:
            self._reschedule_call(0, partial(self._run_slice, error))

    def _abandon_current_cleaning(self) -> None:
        """Close the current steps, so that their cleaning ends unfinished."""
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.close()

    def _reschedule_call(self, delay_ms: float, call: Callable[[], None]) -> None:
        """Schedule a call in place of the one that is scheduled."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._host.scheduler.call_later(delay_ms, call)


def _log_if_failed(error: Exception | None) -> None:
    if error is not None:
        logger.warning("%s is an old one: %s", FILE_NAME, error)
