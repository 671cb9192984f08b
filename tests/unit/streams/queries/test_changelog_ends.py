"""Test how far behind a standby is said to be: never nearer than it was."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown
from streams.queries.changelog_ends import ChangelogEnds, StandbyDistance
from streams.queries.stale_bounds import StaleBounds

T = TypeVar("T")
LOG, IN = Partition("log", 0), Partition("in", 0)


class Brokers:
    """Stands in for what brokers answer, and for the time."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.end = 0
        self.offset = 0
        self.is_away = False
        self.ends = ChangelogEnds(
            lambda partitions, _: self.answer({LOG: self.end}),
            lambda _: self.answer(CommittedOffsets({IN: OffsetAndMetadata(self.offset, "")}, [])),
            lambda: self.now_s,
            ThreadPoolExecutor(1),
        )

    def answer(self, found: T) -> T:
        if self.is_away:
            raise OutcomeUnknown("no answer")
        return found

    def sample(self, at_s: float, end: int, offset: int) -> None:
        self.now_s, self.end, self.offset = at_s, end, offset
        if (sampling := self.ends.request_sample({LOG}, {IN})) is not None:
            sampling.result(10.0)


def test_the_newest_end_that_was_reached_tells_age_and_inputs_and_the_newest_of_all_the_lag() -> (
    None
):
    brokers = Brokers()
    brokers.sample(100.0, end=10, offset=5)
    brokers.sample(101.0, end=20, offset=7)
    brokers.now_s = 101.5
    measure = brokers.ends.measure_distance
    assert measure(LOG, 9, [IN]) == StandbyDistance(11, None, {})
    assert measure(LOG, 10, [IN]) == StandbyDistance(10, 1.5, {IN: 5})
    assert measure(LOG, 25, [IN]) == StandbyDistance(0, 0.5, {IN: 7})


def test_a_lag_is_not_known_any_more_when_brokers_are_away() -> None:
    brokers = Brokers()
    brokers.sample(100.0, end=10, offset=5)
    brokers.is_away = True
    brokers.sample(103.0, end=99, offset=9)
    assert brokers.ends.measure_distance(LOG, 10, [IN]) == StandbyDistance(None, 3.0, {IN: 5})


def test_samples_are_apart() -> None:
    brokers = Brokers()
    brokers.sample(100.0, end=10, offset=5)
    brokers.sample(100.05, end=20, offset=6)
    assert brokers.ends.measure_distance(LOG, 10, [IN]).lag == 0


@pytest.mark.parametrize(
    ("bounds", "lag", "age_s", "excess"),
    [
        (StaleBounds(), None, 9.0, ""),
        (StaleBounds(max_lag=3), 3, 9.0, ""),
        (StaleBounds(max_lag=3), 4, 0.0, "4 offsets behind"),
        (StaleBounds(max_lag=3), None, 0.0, "an unknown number of offsets"),
        (StaleBounds(max_age=1.0), 9, 1.0, ""),
        (StaleBounds(max_age=1.0), 0, 1.1, "1.100 s old"),
        (StaleBounds(), 0, None, "of an age that is not known"),
    ],
)
def test_bounds_say_what_is_too_far_behind(
    bounds: StaleBounds, lag: int | None, age_s: float | None, excess: str
) -> None:
    found = bounds.describe_excess(lag, age_s)
    assert found.startswith(excess)
    assert bool(found) is bool(excess)


def test_bounds_below_0_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        StaleBounds(max_lag=-1)
