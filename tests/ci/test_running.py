"""Test that parts run side by side, that hanging ones are ended, and that times are compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ci import running
from tests.ci.parts import AT_ONCE, CI, LEVELS, Part, order_parts, parts_of
from tests.ci.running import run_parts
from tests.ci.times import PAGE, Outcome, find_overruns, format_table, read_entries

KEEPS_NONE = "PYTHONDONTWRITEBYTECODE"
MEETS = """
import pathlib, sys, time
mine, other = map(pathlib.Path, sys.argv[1:])
mine.touch()
deadline = time.monotonic() + 300
while not other.exists():
    assert time.monotonic() < deadline, "nobody runs beside this part"
    time.sleep(0.01)
"""


def python(name: str, source: str, *arguments: object, **more: object) -> Part:
    return Part(name, (sys.executable, "-c", source, *map(str, arguments)), **more)  # type: ignore[arg-type]


def test_a_part_has_passed_with_the_exit_statuses_that_are_good_for_it() -> None:
    fails = "raise SystemExit(1)"
    outcomes = run_parts([python("bad", fails), python("good", fails, good=(0, 1))], {})
    assert {each.part: each.verdict for each in outcomes} == {
        "bad": "failed, status 1",
        "good": "passed",
    }


def test_the_processes_of_a_part_keep_bytecode_whatever_the_machine_says() -> None:
    show = f"show:; @echo $${{{KEEPS_NONE}-kept}}"
    command = ["make", "--no-print-directory", "--eval", show, "show"]
    environment = {**os.environ, KEEPS_NONE: "1"}
    ran = subprocess.run(
        command, cwd=PAGE.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.stdout == "kept\n", ran.stderr


def test_two_parts_run_side_by_side(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    outcomes = run_parts([python("one", MEETS, one, two), python("two", MEETS, two, one)], {})
    assert [each.verdict for each in outcomes] == ["passed", "passed"]


def test_parts_that_run_alone_come_last_one_after_the_other(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    source = (
        "import sys, time\n"
        "def note(text): open(sys.argv[1], 'a').write(text)\n"
        "note(sys.argv[2]); time.sleep(0.3); note(sys.argv[2])\n"
    )
    alone = [python(name, source, notes, name, alone=True) for name in "ab"]
    run_parts([*alone, python("c", source, notes, "c")], {})
    assert notes.read_text() == "ccaabb"


def test_a_part_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PART_TIMEOUT_S", 0.5)
    (outcome,) = run_parts([python("hangs", "import time; time.sleep(60)")], {})
    assert outcome.verdict.startswith("failed, not done after")


def test_what_a_part_prints_is_shown_with_its_verdict(capfd: pytest.CaptureFixture[str]) -> None:
    run_parts([python("speaks", "import os; print(os.environ['SAID'])")], {"SAID": "so much"})
    printed = capfd.readouterr().out
    assert "=== speaks: passed" in printed
    assert "so much" in printed


def test_progress_shows_the_percentage_that_pytest_printed_last(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "PROGRESS_EVERY_S", 0.1)
    source = "import time; print('... [ 12%]\\n... [ 57%]', flush=True); time.sleep(1)"
    run_parts([python("tests", source)], {})
    assert "... tests 57 %; 0 parts to come" in capfd.readouterr().out


def test_a_part_that_takes_a_third_longer_than_its_entry_is_named() -> None:
    entries = {"quick": 5, "slow": 60, "fine": 60}
    outcomes = [
        Outcome("quick", 14.0, "passed"),
        Outcome("slow", 81.0, "passed"),
        Outcome("fine", 79.0, "passed"),
        Outcome("new", 1.0, "passed"),
    ]
    assert find_overruns(outcomes, entries) == [
        "slow took 81 s; its entry says 60 s",
        "new has no entry in CONTRIBUTING.md: it took 1 s",
    ]


def test_the_printed_table_is_the_one_that_is_read_back() -> None:
    table = format_table([Outcome("unit tests", 63.4, "passed")], 63.4)
    assert read_entries(table) == {"unit tests": 63}


def test_every_part_of_ci_has_an_entry_and_every_entry_a_part() -> None:
    assert set(read_entries(PAGE.read_text())) == {part.name for part in parts_of("ci")}


def test_the_longest_parts_begin_first_and_those_of_unknown_length_before_them() -> None:
    parts = [Part(name, ()) for name in ("short", "new", "long", "newer")]
    ordered = order_parts(parts, {"short": 1, "long": 2})
    assert [part.name for part in ordered] == ["new", "newer", "long", "short"]


def test_the_last_parts_of_ci_end_together_by_the_table() -> None:
    entries = read_entries(PAGE.read_text())
    ends = [0] * AT_ONCE[CI]
    for part in order_parts(parts_of(CI), entries):
        if not part.alone:
            ends[ends.index(min(ends))] += entries[part.name]
    assert max(ends) - min(ends) < 30, ends


@pytest.mark.parametrize("level", LEVELS)
def test_parts_of_a_level_have_names_of_their_own(level: str) -> None:
    names = [part.name for part in parts_of(level)]
    assert len(set(names)) == len(names)
    assert set(names) >= {part.name for part in parts_of("test")}
