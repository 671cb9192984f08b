"""The state directory: who this process is, and which task belongs to whom.

    <state_dir>/<application.id>/
        process-<n>/id      a UUID, kept for the worker slot n; the slot is held by a lock on it
        <task>/.lock        held by the process that runs the task; says which
        <task>/<store>/     the store's database

A slot's UUID outlives its process, so a worker that comes back takes over its own transactional id
and its own membership. Locks are the kernel's (flock): they end with the process, however it ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from state.errors import DirectoryLocked, StateError


class Lock:
    """An exclusive lock on a file for as long as this object is not released."""

    def __init__(self, path: Path) -> None:
        """Raises DirectoryLocked (with the holder's process id) if another process has it, and
        StateError if the file system has no locks or the file can't be made."""
        self._file = -1
        try:
            path.parent.mkdir(exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip() or "unknown"
            self.release()
            raise DirectoryLocked(f"{path.parent} is in use by process {holder}") from error
        except OSError as error:
            self.release()
            raise StateError(f"{path} can't be locked: {error.strerror}") from error

    def release(self) -> None:
        """Let go of it; a second time does nothing."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


class ProcessSlot:
    """The identity of one worker: `number` among those of this machine, and a lasting `id`."""

    def __init__(self, number: int, identity: UUID, lock: Lock) -> None:
        self.number = number
        self.id = identity
        self._lock = lock

    def release(self) -> None:
        self._lock.release()


class StateDirectory:
    """The directory of one application on this machine, shared by its worker processes.

    Raises StateError if it can't be created or written.
    """

    def __init__(self, state_dir: Path, application_id: str) -> None:
        self.path = state_dir / application_id
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / f".writable-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise StateError(
                f"state_dir {str(state_dir)!r} can't be written ({error.strerror}): "
                "choose another with state_dir=..., MILLRACE_STATE_DIR or --state-dir"
            ) from error

    def claim_slot(self, new_id: Callable[[], UUID]) -> ProcessSlot:
        """The first worker slot that no live process holds; `new_id` names a slot used first."""
        number = 0
        while True:
            directory = self.path / f"process-{number}"
            try:
                lock = Lock(directory / ".lock")
            except DirectoryLocked:
                number += 1
                continue
            return ProcessSlot(number, self._identity(directory / "id", new_id), lock)

    @staticmethod
    def _identity(path: Path, new_id: Callable[[], UUID]) -> UUID:
        try:
            return UUID(path.read_text().strip())
        except FileNotFoundError:
            identity = new_id()
        except ValueError as error:
            raise StateError(
                f"{path} should hold a UUID: {error}; delete it to start anew"
            ) from error
        # Written aside and renamed: a crash in between must not leave half an identity.
        fresh = path.with_suffix(".new")
        fresh.write_text(f"{identity}\n")
        fresh.replace(path)
        return identity

    def lock_task(self, task: str) -> Lock:
        """Own the directory of `task`. Raises DirectoryLocked while another process does."""
        return Lock(self.path / task / ".lock")

    def store_path(self, task: str, store: str) -> Path:
        return self.path / task / store
