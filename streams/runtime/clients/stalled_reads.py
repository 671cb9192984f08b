"""Find out whether a consumer reads nothing of what brokers have had for it all the while.

librdkafka 2.16 may lose all of its brokers for good: a Kafka node that was stopped for minutes and
that its controller has fenced lists no brokers for a moment; a client that re-bootstraps then drops
even the address that it was given, and polls nothing more, without an error. No time-out of its own
ends that. So where polls return nothing, brokers are asked by a client of its own:

    nothing was polled for       what is done
    3 s                          the last stable offsets are fetched; a partition that is to be read
                                 below one should come
    as long again, and it is     the consumer is stalled: its caller replaces the client
    still where it was
    and all is read              fetched again after twice as long, up to a minute

What is polled or added begins that anew, and an error of a connection lets the first interval hold
again. After each replacement it takes twice as long, so that a batch that comes slowly comes some
time. Offsets at an end may be no records, where compaction has removed them: no client moves over
these. So what a new client has not read either is left alone until there is more, or an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError

log = logging.getLogger(__name__)

_FIRST_LOOK_S, _LOOK_INTERVAL_S_MAX = 3.0, 60.0
_REPLACEMENT_INTERVAL_S_MAX = 600.0

FetchStableOffsets = Callable[[Collection[Partition]], Mapping[Partition, int]]
"""Fetches the last stable offsets of partitions, of those whose leader answers."""


class _Gap(NamedTuple):
    """Represents the range that a consumer had to read, up to the last stable offset."""

    begin: int
    end: int


class StalledReadCheck:
    """Notes when one consumer has polled nothing, and finds the partitions that it should read.

    `fetch_stable_offsets` asks brokers by another client than the consumer's, for a short time.
    """

    def __init__(
        self,
        fetch_stable_offsets: FetchStableOffsets,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch_stable_offsets = fetch_stable_offsets
        self._monotonic_s = monotonic_s
        self._waits_since_s: float | None = None
        self._replacement_interval_s = self._interval_s = _FIRST_LOOK_S
        self._left_behind: dict[Partition, _Gap] = {}
        """The gap of each partition that had more to read at the last look."""
        self._replaced_for: dict[Partition, _Gap] = {}
        """The gaps for which clients were replaced since the last error of a connection."""

    def note_records(self) -> None:
        """Note that the consumer has polled something."""
        self._waits_since_s = None
        self._replacement_interval_s = _FIRST_LOOK_S

    def reset_wait(self) -> None:
        """Begin the wait for records anew, as the consumer is to read other partitions."""
        self._waits_since_s = None

    def note_error(self) -> None:
        """Note that a connection of the consumer has failed."""
        self._interval_s = min(self._interval_s, self._replacement_interval_s)
        self._replaced_for.clear()

    def find_stalled(
        self, get_positions: Callable[[], Mapping[Partition, int]]
    ) -> dict[Partition, int]:
        """Return the partitions that stand still though there is more to read, with the position.

        Is called after each poll that has returned nothing; empty if nothing has stalled, or nobody
        knows. `get_positions` returns those of the partitions that are to be read.
        """
        now_s = self._monotonic_s()
        if self._waits_since_s is None:
            self._schedule_next_look(now_s, self._replacement_interval_s)
        elif now_s - self._waits_since_s >= self._interval_s:
            return self._find_still_stalled_and_fetch_gaps(get_positions())
        return {}

    def _schedule_next_look(self, now_s: float, interval_s: float) -> None:
        """Let the next look come after so many seconds without a record."""
        self._waits_since_s, self._interval_s = now_s, interval_s
        self._left_behind = {}

    def _find_still_stalled_and_fetch_gaps(
        self, positions: Mapping[Partition, int]
    ) -> dict[Partition, int]:
        """Return the partitions stalled since the last look, or note which lag behind brokers."""
        stalled = {p: gap for p, gap in self._left_behind.items() if positions.get(p) == gap.begin}
        if stalled:
            self._replaced_for |= stalled
            self._replacement_interval_s = min(
                2 * self._replacement_interval_s, _REPLACEMENT_INTERVAL_S_MAX
            )
            self._waits_since_s = None
            return {p: gap.begin for p, gap in stalled.items()}
        try:
            ends = self._fetch_stable_offsets(list(positions)) if positions else {}
        except (OutcomeUnknown, StreamsError) as error:
            log.debug("what there is to read is not known: %s", error)
            self._schedule_next_look(self._monotonic_s(), self._interval_s)
            return {}
        gaps = {p: _Gap(positions[p], end) for p, end in ends.items() if end > positions[p]}
        behind = {p: gap for p, gap in gaps.items() if self._replaced_for.get(p) != gap}
        longer_s = max(min(2 * self._interval_s, _LOOK_INTERVAL_S_MAX), self._interval_s)
        self._schedule_next_look(self._monotonic_s(), self._interval_s if behind else longer_s)
        self._left_behind = behind
        return {}
