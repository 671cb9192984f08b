"""Test slots, identities and task locks of the state directory across real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread
from uuid import UUID

import pytest

from state.directory import StateDirectory
from state.errors import DirectoryLocked, StateError

FIRST, SECOND = UUID(int=1), UUID(int=2)


def test_a_slot_keeps_its_identity_when_it_is_claimed_again(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    slot = directory.claim_slot(lambda: FIRST)
    assert (slot.number, slot.id) == (0, FIRST)
    slot.release_lock()
    assert directory.claim_slot(lambda: SECOND).id == FIRST


def test_a_directory_keeps_its_id_which_its_workers_share(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    assert directory.read_or_create_id(lambda: FIRST) == FIRST
    assert StateDirectory(tmp_path, "app").read_or_create_id(lambda: SECOND) == FIRST
    (directory.path / "millrace.json").unlink()
    StateDirectory(tmp_path, "app")  # what is left is known to be its own


def test_two_workers_that_start_together_have_one_id(tmp_path: Path) -> None:
    first, second = StateDirectory(tmp_path, "app"), StateDirectory(tmp_path, "app")
    found: list[UUID] = []
    other = Thread(target=lambda: found.append(second.read_or_create_id(lambda: SECOND)))

    def create_while_the_other_looks() -> UUID:
        other.start()
        other.join(0.3)
        return FIRST

    found.append(first.read_or_create_id(create_while_the_other_looks))
    other.join()
    assert found == [FIRST, FIRST]


def test_replaced_ids_last_and_are_those_of_the_slot_and_of_the_directory(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    directory.read_or_create_id(lambda: FIRST)
    slots = [directory.claim_slot(lambda: FIRST), directory.claim_slot(lambda: SECOND)]
    new_ids = [UUID(int=number) for number in (3, 4, 5)]
    assert directory.replace_slot_and_directory_ids(
        slots[0], FIRST, lambda: new_ids.pop(0)
    ) == UUID(int=3)
    # The worker of the other slot knows the former id, too: both still share one directory.
    assert directory.replace_slot_and_directory_ids(
        slots[1], FIRST, lambda: new_ids.pop(0)
    ) == UUID(int=3)
    assert [slot.id for slot in slots] == [UUID(int=4), UUID(int=5)]
    for slot in slots:
        slot.release_lock()
    again = StateDirectory(tmp_path, "app")
    assert again.read_or_create_id(lambda: FIRST) == UUID(int=3)
    assert [again.claim_slot(lambda: FIRST).id for _ in range(2)] == [UUID(int=4), UUID(int=5)]


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
    directory.claim_slot(lambda: FIRST).release_lock()
    (directory.path / "process-0" / "id").write_text("nonsense")
    with pytest.raises(StateError, match="should hold a UUID"):
        directory.claim_slot(lambda: SECOND)


def test_a_directory_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    (directory.path / "millrace.json").write_text('{"format": 2, "application_id": "app"}')
    with pytest.raises(
        StateError, match=r"newer version of Millrace \(format 2; this one knows 1\): run that"
    ):
        StateDirectory(tmp_path, "app")


def test_a_directory_of_another_application_is_refused(tmp_path: Path) -> None:
    StateDirectory(tmp_path, "first")
    (tmp_path / "first").rename(tmp_path / "second")
    with pytest.raises(StateError, match="is the state of application 'first', not of 'second'"):
        StateDirectory(tmp_path, "second")


def test_a_directory_that_holds_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "app" / "photos").mkdir(parents=True)
    with pytest.raises(StateError, match="holds 'photos': it is no state directory"):
        StateDirectory(tmp_path, "app")
    assert [path.name for path in (tmp_path / "app").iterdir()] == ["photos"]


def test_a_marker_that_cannot_be_read_is_named_with_the_remedy(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    (directory.path / "millrace.json").write_text("{")
    with pytest.raises(StateError, match=r"millrace.json can't be read .* delete this one file"):
        StateDirectory(tmp_path, "app")


def test_a_directory_from_before_there_was_a_marker_gets_one(tmp_path: Path) -> None:
    for name in ("process-0", "0_0"):
        (tmp_path / "app" / name).mkdir(parents=True)
    StateDirectory(tmp_path, "app")
    StateDirectory(tmp_path, "app")
    assert (tmp_path / "app" / "millrace.json").exists()
