"""Note how far changelogs and committed inputs have come, to tell how old a standby's store is.

Theory of operation. A sample is taken at a time: first the committed offsets of the inputs are
fetched, then the end of each changelog. A store whose position has reached the end of a sample has
all that was committed at its time, and has taken in the inputs up to its offsets. So the newest
sample that a position has reached gives the age and a position in the inputs, and the newest of all
the lag. Ends are high watermarks: what a transaction is about to commit counts as well.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from threading import Lock
from typing import NamedTuple

from streams.common.topic_partitions import CommittedOffsets, Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.membership.connection import ConnectionLost

log = logging.getLogger(__name__)

_SAMPLE_INTERVAL_S = 0.1
_INPUTS_INTERVAL_S = 1.0
"""The seconds between two fetches of committed offsets, which take a connection of their own."""
_SAMPLES_MAX = 3_000
_FETCH_TIMEOUT_S = 1.0
_RETRY_S = 0.5
_LAG_AGE_S_MAX = 2.0
"""The age from which on the end of a changelog says nothing of the lag any more."""


class _Sample(NamedTuple):
    """Holds the end of each changelog partition at a time, and the committed inputs before it."""

    at_s: float
    ends: Mapping[Partition, int]
    inputs: Mapping[Partition, int] | None


class StandbyDistance(NamedTuple):
    """Says how far a standby's store is behind; None is not known.

    `age_s` is the time since it had everything, `inputs` are offsets that it has taken in.
    """

    lag: int | None
    age_s: float | None
    inputs: Mapping[Partition, int]


class ChangelogEnds:
    """Samples the ends of one store's changelogs, and the committed offsets of its inputs.

    `fetch_ends` takes partitions and a time-out in s, `fetch_inputs` partitions: both ask brokers,
    on a thread of `executor`, so that whoever reads waits no longer than it has time.
    """

    def __init__(
        self,
        fetch_ends: Callable[[Sequence[Partition], float], Mapping[Partition, int]],
        fetch_inputs: Callable[[list[Partition]], CommittedOffsets],
        monotonic_s: Callable[[], float],
        executor: Executor,
    ) -> None:
        self._fetch_ends = fetch_ends
        self._fetch_inputs = fetch_inputs
        self._monotonic_s = monotonic_s
        self._executor = executor
        self._starting = Lock()
        self._sampling: Future[None] | None = None
        self._next_at_s = self._inputs_at_s = 0.0
        self._samples: deque[_Sample] = deque(maxlen=_SAMPLES_MAX)

    def request_sample(
        self, changelogs: Collection[Partition], inputs: Collection[Partition]
    ) -> Future[None] | None:
        """Have a sample taken, and return what ends with it; None if one was taken just now."""
        with self._starting:
            if self._monotonic_s() < self._next_at_s:
                return None
            if self._sampling is None or self._sampling.done():
                self._sampling = self._executor.submit(
                    self._take_sample, sorted(changelogs), sorted(inputs)
                )
            return self._sampling

    def _take_sample(self, changelogs: list[Partition], inputs: list[Partition]) -> None:
        """Ask brokers for the inputs now and then, and for the ends each time."""
        at_s = self._monotonic_s()
        try:
            committed = None
            if at_s >= self._inputs_at_s:
                offsets = self._fetch_inputs(inputs).offsets
                committed = {partition: each.offset for partition, each in offsets.items()}
                self._inputs_at_s = at_s + _INPUTS_INTERVAL_S
            ends = self._fetch_ends(changelogs, _FETCH_TIMEOUT_S)
        except (OutcomeUnknown, StreamsError, ConnectionLost) as error:
            log.debug("the ends of changelogs are not known: %s", error)
            self._next_at_s = self._monotonic_s() + _RETRY_S
            return
        self._samples.append(_Sample(at_s, dict(ends), committed))
        self._next_at_s = at_s + _SAMPLE_INTERVAL_S

    def measure_distance(
        self, changelog: Partition, position: int, inputs: Collection[Partition]
    ) -> StandbyDistance:
        """Return how far a store at `position` of its changelog is behind, with such inputs."""
        lag, age_s, taken_in = None, None, dict[Partition, int]()
        for sample in reversed(tuple(self._samples)):
            end = sample.ends.get(changelog)
            if end is None:
                continue
            sample_age_s = self._monotonic_s() - sample.at_s
            if lag is None and sample_age_s <= _LAG_AGE_S_MAX:
                lag = max(end - position, 0)
            if position < end:
                continue
            if age_s is None:
                age_s = sample_age_s
            if sample.inputs is not None:
                taken_in = {p: sample.inputs[p] for p in inputs if p in sample.inputs}
                break
        return StandbyDistance(lag, age_s, taken_in)
