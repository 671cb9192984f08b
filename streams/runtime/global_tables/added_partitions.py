"""Find partitions that are added to the topics of global tables while these are copied.

All partitions are assigned when copying begins. Rows in a partition that is added later would be
found by no look-up until the worker starts again, as in Kafka Streams (GlobalStreamThread).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from streams.errors import OutcomeUnknown

log = logging.getLogger(__name__)

_RETRY_S = 1.0


class AddedPartitionCheck:
    """Looks every `interval_s` whether topics have more partitions than are known."""

    def __init__(
        self,
        fetch_partition_counts: Callable[[], Mapping[str, int]],
        monotonic_s: Callable[[], float],
        interval_s: float,
    ) -> None:
        self._fetch_partition_counts = fetch_partition_counts
        self._monotonic_s = monotonic_s
        self._interval_s = interval_s
        self._check_at_s = monotonic_s() + interval_s

    def find_grown_topics_if_due(self, known_counts: Mapping[str, int]) -> dict[str, int]:
        """Return the topics that have grown, with their counts; none before an interval is over.

        Where no broker answers, they are looked at again soon.
        """
        now_s = self._monotonic_s()
        if now_s < self._check_at_s:
            return {}
        self._check_at_s = now_s + self._interval_s
        try:
            counts = self._fetch_partition_counts()
        except OutcomeUnknown as error:
            self._check_at_s = now_s + min(self._interval_s, _RETRY_S)
            log.info("partitions of global tables are counted another time: %s", error)
            return {}
        return {
            topic: counts[topic]
            for topic, known in known_counts.items()
            if counts.get(topic, known) > known
        }
