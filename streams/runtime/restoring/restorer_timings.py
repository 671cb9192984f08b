"""Measure what a restorer does: batches of restores and of standby tasks, and their records."""

from __future__ import annotations

from collections.abc import Callable

from streams.common.timings import Timing
from streams.runtime.restoring.restoration import HasMore


class RestorerTimings:
    """Holds the seconds of a restorer's batches, and the records of each.

    Kafka Streams has them as those of its state updater.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self.restore = Timing(monotonic_s)
        self.follow = Timing(monotonic_s)
        self.records = Timing(monotonic_s)

    def run_timed_batch(
        self, do_batch: Callable[[], HasMore], timing: Timing, count_records: Callable[[], int]
    ) -> HasMore:
        """Do a batch, add its seconds and the records that it has loaded, and return its result."""
        began_at_s, records_before = self._monotonic_s(), count_records()
        has_more = do_batch()
        now_s = self._monotonic_s()
        records = count_records() - records_before
        if has_more or records:
            timing.observe(now_s - began_at_s, now_s)
            self.records.observe(records, now_s)
        return has_more
