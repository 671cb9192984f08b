"""Slots, identities and task locks of the state directory, across real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from state.directory import StateDirectory
from state.errors import DirectoryLocked, StateError

FIRST, SECOND = UUID(int=1), UUID(int=2)


def test_a_slot_keeps_its_identity_when_it_is_claimed_again(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    slot = directory.claim_slot(lambda: FIRST)
    assert (slot.number, slot.id) == (0, FIRST)
    slot.release()
    assert directory.claim_slot(lambda: SECOND).id == FIRST


def test_two_live_workers_have_two_slots(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    first = directory.claim_slot(lambda: FIRST)
    second = directory.claim_slot(lambda: SECOND)
    assert (first.number, second.number) == (0, 1)
    assert first.id != second.id


def test_a_killed_process_gives_its_slot_and_its_tasks_back(tmp_path: Path) -> None:
    program = (
        "import sys, uuid, pathlib, state.directory as d\n"
        "s = d.StateDirectory(pathlib.Path(sys.argv[1]), 'app')\n"
        "slot = s.claim_slot(lambda: uuid.UUID(int=1)); lock = s.lock_task('0_0')\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    directory = StateDirectory(tmp_path, "app")
    with pytest.raises(DirectoryLocked, match=str(holder.pid)):
        directory.lock_task("0_0")
    assert directory.claim_slot(lambda: SECOND).number == 1
    holder.kill()
    holder.communicate()
    directory.lock_task("0_0").release()
    slot = directory.claim_slot(lambda: SECOND)
    assert (slot.number, slot.id) == (0, FIRST)


def test_a_directory_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match=r"state_dir .*file.*choose another"):
        StateDirectory(tmp_path / "file", "app")


def test_a_damaged_identity_is_reported_and_not_replaced(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    directory.claim_slot(lambda: FIRST).release()
    (directory.path / "process-0" / "id").write_text("nonsense")
    with pytest.raises(StateError, match="should hold a UUID"):
        directory.claim_slot(lambda: SECOND)
