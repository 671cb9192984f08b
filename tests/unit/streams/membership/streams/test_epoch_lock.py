"""Test for how long a commit may keep the heartbeats of a streams member back."""

from __future__ import annotations

import pytest

from streams.common.host import SystemHost
from streams.membership.streams.epoch_lock import EpochLock

NOW_S = 1_000.0


class StoppedClock(SystemHost):
    """Provides a host whose monotonic time stands still."""

    def monotonic_s(self) -> float:
        return NOW_S


@pytest.mark.parametrize(
    ("session_ms", "silent_s", "limit_s"),
    [
        (45_000, 0.0, 30.0),
        (45_000, 5.0, 25.0),
        (45_000, 22.5, 7.5),
        (45_000, 40.0, 7.5),
        (6_000, 1.0, 3.0),
    ],
)
def test_a_commit_leaves_a_third_of_the_session_to_the_next_heartbeat(
    session_ms: int, silent_s: float, limit_s: float
) -> None:
    lock = EpochLock(StoppedClock(), session_ms)
    with lock.hold_for_commit(lambda: NOW_S - silent_s) as found_s:
        assert found_s == pytest.approx(limit_s)


def test_a_member_that_no_heartbeat_was_answered_has_two_thirds() -> None:
    with EpochLock(StoppedClock(), 45_000).hold_for_commit(lambda: None) as found_s:
        assert found_s == 30.0
