"""Test that an incident is one line for each cause, with a count of those like it."""

from __future__ import annotations

import logging

import pytest

from streams.runtime.threads.recovery_log import RecoveryLog
from tests.unit.streams.runtime.fakes import Clock


def test_causes_that_differ_in_numbers_are_one_line_a_minute_with_their_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock()
    recoveries = RecoveryLog("thread 0", clock)
    for number in range(100):
        recoveries.log_recovery("", f"fenced: {number} not delivered to out[{number}]")
        clock.advance_monotonic_clock(1)
    recoveries.log_recovery("one task", "another cause")
    line = "thread 0 starts over from what is committed"
    assert caplog.messages == [
        f"{line}: fenced: 0 not delivered to out[0]",
        f"{line}: fenced: 60 not delivered to out[60] (59 more like it in 60 s)",
        "thread 0 starts one task over from what is committed: another cause",
    ]
    recoveries.end_incident()
    assert caplog.messages[3:] == ["thread 0 commits again, after 101 recoveries in 100 s"]
    recoveries.log_recovery("", "fenced: 1 not delivered to out[1]")
    recoveries.end_incident()
    assert len(caplog.messages) == 5
