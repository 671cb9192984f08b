"""Test what the doctor says of incidents in the logs of workers."""

from __future__ import annotations

from pathlib import Path

from streams.doctor.findings import Verdict
from streams.doctor.recent_errors import check_logs

LINE = (
    "2026-11-29 09:{minute:02d}:00,000 7 WARNING streams.runtime.threads.thread_recovery: thread 0 "
    "starts over from what is committed: no broker answers at kafka-1:9092 (see MR-040)\n"
)


def test_without_a_log_nothing_is_known() -> None:
    (found,) = check_logs([])
    assert (found.verdict, "--logs FILE" in found.what) == (Verdict.NOT_LOOKED_AT, True)


def test_a_log_without_an_incident_is_fine(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("2026-11-29 09:00:00,000 7 INFO streams: state REBALANCING -> RUNNING\n")
    (found,) = check_logs([log])
    assert found.verdict is Verdict.FINE


def test_the_last_incidents_are_named_with_their_cause(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("".join(LINE.format(minute=minute) for minute in (1, 11, 21, 31, 41)))
    found = list(check_logs([log]))
    assert [each.verdict for each in found] == [Verdict.WARNING] * 3
    assert "09:41" in found[0].what
    assert "(2 earlier ones)" in found[0].what
    assert "MR-040" in found[0].consequence
    assert f"logs analyze {log}" in found[0].remedy
