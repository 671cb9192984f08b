"""Test what the doctor says of incidents in the logs of workers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from state.directory import LOCK_FILE
from state.locks import ProcessFileLock
from streams.doctor.findings import DoctorFinding, Verdict
from streams.doctor.recent_errors import check_logs
from streams.doctor.symptom_codes import add_symptom_code
from streams.log_analysis.headers import is_ambiguous_local_time

NOW_S = datetime.fromisoformat("2026-11-29 10:00:00").timestamp()
OUTAGE = "thread 0 starts over from what is committed: no broker answers at kafka-1:9092"
POISON = "step 'map' can't process lines[0]@7: ValueError"
START = "millrace 0.1.0 runs 'words' on kafka-1:9092; reads lines"
END = "state PENDING_ERROR -> ERROR"


def write_log(directory: Path, *lines: tuple[str, str], day: int = 29) -> Path:
    log = directory / "worker.log"
    log.write_text(
        "".join(
            f"2026-11-{day} {at}:00,000 7 "
            f"{'WARNING' if message in (OUTAGE, POISON) else 'INFO'} streams.x: {message}\n"
            for at, message in lines
        )
    )
    return log


def find(log: Path) -> list[DoctorFinding]:
    return list(check_logs([log], NOW_S))


def test_without_a_log_nothing_is_known() -> None:
    (found,) = check_logs([])
    assert (found.verdict, "--logs FILE" in found.what) == (Verdict.NOT_LOOKED_AT, True)


def test_a_log_without_an_incident_is_fine(tmp_path: Path) -> None:
    (found,) = find(write_log(tmp_path, ("09:00", "state REBALANCING -> RUNNING")))
    assert found.verdict is Verdict.FINE
    assert found.what == "no incident in 1 log in the last hour"


def test_the_last_incidents_are_named_with_age_cause_and_code(tmp_path: Path) -> None:
    log = write_log(tmp_path, *((f"09:{minute}", OUTAGE) for minute in ("05", 15, 25, 35, 45)))
    found = find(log)
    assert [each.verdict for each in found] == [Verdict.WARNING] * 3
    assert found[0].what.startswith("15 min ago (2026-11-29 09:45:00): ")
    assert found[0].what.endswith("(2 earlier incidents)")
    assert {each.code for each in found} == {"MR-040"}
    assert add_symptom_code(found[0]).code == "MR-040"
    assert "No broker answers" in found[0].consequence
    assert f"logs analyze {log}" in found[0].remedy


def test_incidents_of_one_minute_have_each_its_own_code(tmp_path: Path) -> None:
    found = find(write_log(tmp_path, ("09:45", OUTAGE), ("09:45", POISON)))
    assert {each.code for each in found} == {"MR-040", "MR-072"}


def test_an_incident_of_more_than_an_hour_ago_is_no_warning(tmp_path: Path) -> None:
    log = write_log(tmp_path, ("08:00", START), ("08:30", OUTAGE), ("09:00", "state -> RUNNING"))
    (found,) = find(log)
    assert found.verdict is Verdict.FINE
    assert "1 before that, the last 90 min ago (2026-11-29 08:30:00)" in found.what


@pytest.mark.parametrize("day", [27, 29])
def test_why_a_worker_ended_is_told_however_long_ago_it_was(day: int, tmp_path: Path) -> None:
    log = write_log(tmp_path, ("08:00", START), ("08:30", POISON), ("08:30", END), day=day)
    (found,) = find(log)
    assert found.verdict is Verdict.WARNING
    assert found.what.startswith("2 days ago" if day == 27 else "90 min ago")


def test_what_happened_before_the_last_start_is_told_as_such(tmp_path: Path) -> None:
    before = (("08:00", START), ("09:30", POISON), ("09:30", END))
    (found,) = find(write_log(tmp_path, *before, ("09:50", START)))
    assert ", before the worker's last start 10 min ago: " in found.what
    log = write_log(tmp_path, *before, ("09:50", START), ("09:55", END), day=28)
    (found,) = find(log)
    assert found.verdict is Verdict.FINE


@pytest.fixture
def ended_process() -> int:
    """Provide the id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def write_run(directory: Path, process: int, state: Path) -> Path:
    log = directory / "worker.log"
    log.write_text(
        f"2026-11-29 06:00:00,000 {process} INFO streams.x: {START}; state in {state}; no port\n"
        f"2026-11-29 07:00:00,000 {process} WARNING streams.x: {OUTAGE}\n"
    )
    return log


def name_in_slot(state: Path, process: int, host: str = "") -> Path:
    """Let a slot of a state directory name a process that has had it; return its lock."""
    lock = state / "process-0" / LOCK_FILE
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text(f"{process}\npython app.py\n\n{host or os.uname().nodename}\n")
    return lock


def test_a_worker_that_was_killed_is_known_to_have_ended_by_its_free_slot(
    tmp_path: Path, ended_process: int
) -> None:
    state = tmp_path / "state of words"
    name_in_slot(state, ended_process)
    (killed,) = find(write_run(tmp_path, ended_process, state))
    assert (killed.verdict, killed.code) == (Verdict.WARNING, "MR-040")
    (of_another_machine,) = find(write_run(tmp_path, ended_process, tmp_path / "elsewhere"))
    assert of_another_machine.verdict is Verdict.FINE


def test_a_worker_whose_process_id_another_program_has_got_has_ended(tmp_path: Path) -> None:
    name_in_slot(tmp_path / "state", os.getpid())
    (killed,) = find(write_run(tmp_path, os.getpid(), tmp_path / "state"))
    assert killed.verdict is Verdict.WARNING


def test_a_worker_that_has_its_slot_runs_and_one_of_another_machine_is_not_known(
    tmp_path: Path, ended_process: int
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    lock = ProcessFileLock(state / "process-0" / LOCK_FILE)
    (running,) = find(write_run(tmp_path, os.getpid(), state))
    assert running.verdict is Verdict.FINE
    lock.release()
    name_in_slot(state, ended_process, "db-7")
    (elsewhere,) = find(write_run(tmp_path, ended_process, state))
    assert elsewhere.verdict is Verdict.FINE
    name_in_slot(state, os.getpid())
    (replaced,) = find(write_run(tmp_path, ended_process, state))
    assert replaced.verdict is Verdict.FINE


@pytest.mark.parametrize(
    ("words", "verdict"),
    [(", without a commit", Verdict.WARNING), (": started again", Verdict.FINE)],
)
def test_a_worker_that_is_not_started_again_after_a_signal_has_ended(
    words: str, verdict: Verdict, tmp_path: Path
) -> None:
    log = write_log(tmp_path, ("06:00", START), ("07:00", OUTAGE))
    with log.open("a") as file:
        file.write(f"millrace: worker 7 was ended by SIGKILL{words}\n")
    assert {each.verdict for each in find(log)} == {verdict}


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this machine be in a zone that has summer time."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


AFTER_S = datetime(2026, 10, 25, 2, 0, tzinfo=UTC).timestamp()
"""One hour after summer time has ended: 3 o'clock."""


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("line", "age"),
    [
        (f"2026-10-25 02:30:00,000 7 WARNING streams.x: {OUTAGE}", "about 90 min ago ("),
        (f"2026-10-25 02:30:00,000+0200 WARNING streams.x: {OUTAGE}", "90 min ago ("),
        (f"2026-10-25 02:30:00,000+01:00 WARNING streams.x: {OUTAGE}", "30 min ago ("),
        (
            f'{{"time":"2026-10-25T01:30:00.000Z","level":"warning","message":"{OUTAGE}"}}',
            "30 min ago (2026-10-25 02:30:00+01:00)",
        ),
    ],
)
def test_an_age_in_the_hour_that_comes_twice_is_exact_where_the_log_has_a_zone(
    line: str, age: str, tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    log.write_text(line + "\n")
    (found,) = check_logs([log], AFTER_S)
    assert age in found.what
    assert found.what.startswith(age) or found.verdict is Verdict.FINE


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-10-25 02:30:00", True),
        ("2026-10-25 03:30:00", False),
        ("2026-03-29 02:30:00", False),
        ("2026-10-25 02:30:00+01:00", False),
    ],
    ids=["as summer time ends", "after that", "as summer time begins", "with a zone"],
)
def test_only_the_hour_in_which_summer_time_ends_comes_twice(text: str, expected: bool) -> None:
    assert is_ambiguous_local_time(datetime.fromisoformat(text)) is expected
