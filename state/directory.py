"""Manage an application's state directory: its owner, its worker slots, its tasks' directories.

    <state_dir>/<application.id>/
        millrace.json       the format of what is here, and the application that it belongs to
        subtopologies.json  which numbers the directories of each sub-topology's tasks have
        directory-id        a UUID: workers with the same one share the state of tasks
        process-<n>/id      a UUID, kept for the worker slot n; the slot is held by a lock on it
        process-<n>/global/<store>/   the slot's own copy of a global table
        <number>_<partition>/.lock     held by the process that runs the task; names that process
        <number>_<partition>/<store>/  the store's database; none for a store in memory
        .removed-<number>_<partition>-*   about to be deleted
        former-<number>_<partition>-<store>/   a store that had been overtaken elsewhere

The number is at first that of the sub-topology, and stays when sub-topologies are numbered anew.

A slot's UUID outlives its process, so a worker that comes back takes over its own transactional id
and its own membership.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

from state.errors import DirectoryLocked, StateError
from state.locks import ProcessFileLock, lock_exclusively
from state.subtopologies import SubtopologyContents, match_directory_numbers_by_likeness

FORMAT = 1
"""The version of the directory's format: increased when older versions can't use what is new."""
LOCK_FILE = ".lock"
REMOVED = ".removed-"
_MARKER = "millrace.json"
_TASK = re.compile(r"\d+_\d+")
_SUBTOPOLOGIES = "subtopologies.json"
_SUBTOPOLOGIES_LOCK = ".subtopologies.lock"
_ID, _ID_LOCK = "directory-id", ".directory-id.lock"
_OWN_NAMES = re.compile(
    rf"{_TASK.pattern}|process-\d+|{re.escape(REMOVED)}.*|\.writable-\d+|\.?subtopologies\..*"
    rf"|\.?directory-id.*|former-{_TASK.pattern}-.*"
)


def is_task_directory(name: str) -> bool:
    """Return whether a directory of this name is a task's."""
    return _TASK.fullmatch(name) is not None


class ProcessSlot:
    """Identifies one worker of this machine by its number and a lasting UUID, and locks both."""

    def __init__(self, number: int, process_id: UUID, lock: ProcessFileLock) -> None:
        self.number = number
        self.id = process_id
        self._lock = lock

    def release_lock(self) -> None:
        self._lock.release()


class StateDirectory:
    """Manages the directory of one application on this machine, shared by its worker processes.

    Raises StateError if it can't be created or written, if a newer version has written it, or if it
    belongs to another application or holds files of another program: then nothing in it is touched.
    """

    def __init__(self, state_dir: Path, application_id: str) -> None:
        self.path = state_dir / application_id
        self._owner = ""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._check_or_write_owner(application_id)
            probe = self.path / f".writable-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise StateError(
                f"state_dir {str(state_dir)!r} can't be written ({error.strerror}): "
                "choose another with state_dir=..., MILLRACE_STATE_DIR or --state-dir"
            ) from error

    def _check_or_write_owner(self, application_id: str) -> None:
        """Check that this application owns the directory, or write its marker to an empty one.

        Raises StateError for any other directory, an unreadable marker or a newer format.
        """
        marker = self.path / _MARKER
        try:
            text = marker.read_text()
        except FileNotFoundError:
            for name in sorted(entry.name for entry in self.path.iterdir()):
                if _OWN_NAMES.fullmatch(name) is None and not name.startswith(_MARKER):
                    raise StateError(
                        f"{self.path} has no {_MARKER} and holds {name!r}: it is no state "
                        "directory; choose another state_dir or another application id"
                    ) from None
            _replace_file_atomically(
                marker, json.dumps({"format": FORMAT, "application_id": application_id})
            )
            return
        try:
            found = json.loads(text)
            written, owner = int(found["format"]), str(found["application_id"])
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"{marker} can't be read ({error!r}): if {self.path} is the state of application "
                f"{application_id!r}, delete this one file; if not, choose another state_dir"
            ) from error
        if owner != application_id:
            raise StateError(
                f"{self.path} is the state of application {owner!r}, not of {application_id!r}: "
                "choose another state_dir; or delete it, and the state is rebuilt from changelogs"
            )
        if written > FORMAT:
            raise StateError(
                f"{self.path} was written by a newer version of Millrace (format {written}; this "
                f"one knows {FORMAT}): run that version, choose another state_dir, or delete it, "
                "and the state is rebuilt from changelogs"
            )

    def find_device_and_inode(self) -> tuple[int, int] | None:
        """Return the device and inode of this directory's marker file; None if it is gone."""
        try:
            found = (self.path / _MARKER).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def read_or_create_id(self, create_id: Callable[[], UUID]) -> UUID:
        """Return the UUID of the directory, which `create_id` returns the first time.

        Raises StateError if it can't be read or written.
        """
        try:
            with lock_exclusively(self.path / _ID_LOCK):
                return self._read_or_create_id(self.path / _ID, create_id)
        except OSError as error:
            raise StateError(f"{self.path / _ID} can't be used: {error.strerror}") from error

    def claim_slot(self, create_id: Callable[[], UUID]) -> ProcessSlot:
        """Lock and return the first worker slot that no live process holds.

        `create_id` returns the UUID of a slot that is used for the first time.
        """
        number = 0
        while True:
            directory = self.path / f"process-{number}"
            try:
                lock = ProcessFileLock(directory / LOCK_FILE)
            except DirectoryLocked:
                number += 1
                continue
            try:
                slot = ProcessSlot(
                    number, self._read_or_create_id(directory / "id", create_id), lock
                )
            except BaseException:
                lock.release()
                raise
            self._owner = f"worker {number + 1}"
            return slot

    def replace_slot_and_directory_ids(
        self, slot: ProcessSlot, known_id: UUID, create_id: Callable[[], UUID]
    ) -> UUID:
        """Replace the UUID of a slot, and if needed of the directory; return the directory's UUID.

        The directory gets another one, too, unless a worker in another slot has replaced `known_id`
        before. Raises StateError if they can't be written.
        """
        try:
            with lock_exclusively(self.path / _ID_LOCK):
                directory_id = self._read_or_create_id(self.path / _ID, create_id)
                if directory_id == known_id:
                    directory_id = create_id()
                    _replace_file_atomically(self.path / _ID, f"{directory_id}\n")
                slot.id = create_id()
                _replace_file_atomically(
                    self.path / f"process-{slot.number}" / "id", f"{slot.id}\n"
                )
                return directory_id
        except OSError as error:
            raise StateError(
                f"the ids in {self.path} can't be replaced: {error.strerror}"
            ) from error

    @staticmethod
    def _read_or_create_id(path: Path, create_id: Callable[[], UUID]) -> UUID:
        try:
            return UUID(path.read_text().strip())
        except FileNotFoundError:
            identity = create_id()
        except ValueError as error:
            raise StateError(
                f"{path} should hold a UUID: {error}; delete it to start anew"
            ) from error
        _replace_file_atomically(path, f"{identity}\n")
        return identity

    def assign_and_save_directory_numbers(
        self, subtopologies: Mapping[int, SubtopologyContents]
    ) -> dict[int, int]:
        """Return the directory number of each sub-topology on this machine, and write it to disk.

        Raises StateError if the numbers on disk can't be read or written.
        """
        try:
            with lock_exclusively(self.path / _SUBTOPOLOGIES_LOCK):
                known = self._read_subtopologies()
                numbers = match_directory_numbers_by_likeness(known, subtopologies)
                now = known | {
                    numbers[number]: contents for number, contents in subtopologies.items()
                }
                if now != known:
                    kept = {
                        number: {"sources": sorted(each.sources), "stores": sorted(each.stores)}
                        for number, each in sorted(now.items())
                    }
                    _replace_file_atomically(self.path / _SUBTOPOLOGIES, json.dumps(kept, indent=1))
                return numbers
        except OSError as error:
            raise StateError(
                f"{self.path / _SUBTOPOLOGIES} can't be used: {error.strerror}"
            ) from error

    def _read_subtopologies(self) -> dict[int, SubtopologyContents]:
        """Return the sub-topologies on disk by directory number.

        In a directory of a version that kept no such file they are known by the stores in it.
        """
        path = self.path / _SUBTOPOLOGIES
        try:
            kept = json.loads(path.read_text())
            return {
                int(number): SubtopologyContents(
                    frozenset(each["sources"]), frozenset(each["stores"])
                )
                for number, each in kept.items()
            }
        except FileNotFoundError:
            stores: dict[int, frozenset[str]] = {}
            for task in self.list_tasks():
                number = int(task.partition("_")[0])
                stores[number] = stores.get(number, frozenset()) | self.list_store_names(task)
            return {n: SubtopologyContents(frozenset(), each) for n, each in stores.items() if each}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"{path} can't be read ({error!r}): delete this one file, and directories are "
                "found by the stores in them"
            ) from error

    def lock_task(self, task_name: str) -> ProcessFileLock:
        """Lock the directory of a task and return the lock.

        Raises DirectoryLocked, which names the holder, if another process or another lock of this
        one holds it.
        """
        return ProcessFileLock(self.path / task_name / LOCK_FILE, self._owner)

    def list_tasks(self) -> list[str]:
        """Return the names of the tasks that have a directory, in order."""
        return sorted(each.name for each in self.path.iterdir() if is_task_directory(each.name))

    def list_store_names(self, task_name: str) -> frozenset[str]:
        """Return the names of the stores that have a directory in that of a task."""
        try:
            return frozenset(
                each.name for each in (self.path / task_name).iterdir() if each.is_dir()
            )
        except FileNotFoundError:
            return frozenset()

    def build_global_store_path(self, slot: int, store_name: str) -> Path:
        """Return the path at which the worker of a slot keeps its own copy of a global table."""
        return self.path / f"process-{slot}" / "global" / store_name

    def build_store_path(self, task_name: str, store_name: str) -> Path:
        return self.path / task_name / store_name

    def build_former_store_path(self, task_name: str, store_name: str) -> Path:
        """Return the path to which a store is moved whose task went on elsewhere."""
        return self.path / f"former-{task_name}-{store_name}"


def _replace_file_atomically(path: Path, text: str) -> None:
    """Write a file so that a crash or a power cut leaves the old content or all of the new."""
    fresh = path.with_name(f"{path.name}.new-{os.getpid()}")
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
