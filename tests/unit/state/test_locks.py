"""Test that locks between real processes have one holder, who is named, and end with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from state.errors import DirectoryLocked, StateError
from state.locks import ProcessFileLock, read_holder
from tests.processes import HANG_LIMIT_S
from tests.unit.state.holding import hold_in_process, start_process


def test_the_message_names_the_holders_process_command_and_role(tmp_path: Path) -> None:
    body = "slot = directory.claim_slot(uuid.uuid4); lock = directory.lock_task('0_0')"
    with hold_in_process(tmp_path, body) as process:
        expected = rf"app/0_0 is in use by process {process.pid} \(.*python.* -c .*\), worker 1"
        with pytest.raises(DirectoryLocked, match=expected):
            ProcessFileLock(tmp_path / "app" / "0_0" / ".lock")


def test_a_holder_on_another_machine_is_named_with_its_host(tmp_path: Path) -> None:
    path = tmp_path / "0_0" / ".lock"
    lock = ProcessFileLock(path, "worker 1")
    host = os.uname().nodename
    assert path.read_text().splitlines()[2:] == ["worker 1", host]
    path.write_text(path.read_text().replace(f"\n{host}\n", "\ndb-7\n"))
    with pytest.raises(
        DirectoryLocked, match=rf"process {os.getpid()} of host db-7 \(.*, worker 1"
    ):
        ProcessFileLock(path)
    lock.release()


def test_a_holder_is_read_with_whether_it_is_of_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "0_0" / ".lock"
    assert read_holder(path) == (0, True)
    lock = ProcessFileLock(path)
    assert read_holder(path) == (os.getpid(), True)
    path.write_text(path.read_text().replace(os.uname().nodename, "db-7"))
    assert read_holder(path) == (os.getpid(), False)
    path.write_text("no number\n")
    assert read_holder(path) == (0, True)
    lock.release()


def test_kill_9_lets_go_of_it(tmp_path: Path) -> None:
    with hold_in_process(tmp_path, "lock = directory.lock_task('0_0')") as process:
        process.kill()
        process.wait()
        ProcessFileLock(tmp_path / "app" / "0_0" / ".lock").release()


def test_two_locks_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    first = ProcessFileLock(tmp_path / "0_0" / ".lock", "stream-1")
    with pytest.raises(DirectoryLocked, match=rf"process {os.getpid()} .*stream-1"):
        ProcessFileLock(tmp_path / "0_0" / ".lock")
    first.release()
    first.release()
    ProcessFileLock(tmp_path / "0_0" / ".lock").release()


def test_a_directory_with_nothing_but_its_lock_goes_with_it(tmp_path: Path) -> None:
    ProcessFileLock(tmp_path / "0_0" / ".lock").release()
    assert not (tmp_path / "0_0").exists()
    lock = ProcessFileLock(tmp_path / "0_0" / ".lock")
    (tmp_path / "0_0" / "store").mkdir()
    lock.release()
    assert (tmp_path / "0_0" / "store").exists()


def test_a_lock_on_a_file_that_was_removed_meanwhile_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0_0" / ".lock"
    first = ProcessFileLock(path)
    really_open = os.open

    def open_and_lose(name: Path, flags: int, mode: int) -> int:
        """Open the file, and let its holder remove the directory before the file is locked."""
        monkeypatch.setattr(os, "open", really_open)
        file = really_open(name, flags, mode)
        first.release()
        return file

    monkeypatch.setattr(os, "open", open_and_lose)
    second = ProcessFileLock(path)
    with pytest.raises(DirectoryLocked):
        ProcessFileLock(path)
    second.release()


def test_a_lock_whose_directory_was_moved_away_leaves_the_next_one_alone(tmp_path: Path) -> None:
    first = ProcessFileLock(tmp_path / "0_0" / ".lock")
    (tmp_path / "0_0").rename(tmp_path / "aside")
    second = ProcessFileLock(tmp_path / "0_0" / ".lock")
    first.release()
    assert (tmp_path / "0_0" / ".lock").exists()
    with pytest.raises(DirectoryLocked):
        ProcessFileLock(tmp_path / "0_0" / ".lock")
    second.release()


def test_a_lock_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="can't be locked: No such file"):
        ProcessFileLock(tmp_path / "nowhere" / "0_0" / ".lock")


SWAP = """
wanted, other = {order}
for _ in range(100):
    for attempt in range(100_000):
        try:
            held = directory.lock_task(wanted)
            break
        except DirectoryLocked:
            time.sleep(0.0001)
    else:
        sys.exit("never got " + wanted)
    wanted, other = other, wanted
    held.release()
print("swapped", flush=True)
"""


def test_two_processes_that_swap_their_tasks_both_get_on(tmp_path: Path) -> None:
    processes = [
        start_process(tmp_path, SWAP.format(order=order))
        for order in ("('0_0', '0_1')", "('0_1', '0_0')")
    ]
    try:
        said = [process.communicate(timeout=HANG_LIMIT_S)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert said == ["swapped\n"] * 2
