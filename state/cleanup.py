"""Delete the directories of tasks that run elsewhere, after a delay (`state.cleanup.delay.ms`).

A task that comes back within that time goes on from the state that is there; after it the space is
worth more. A directory is deleted under its task's lock, and renamed first: a process that opens
the task in the middle finds either all of it or nothing.

    what is found                          what becomes of it
    a task in `keep`, or locked            stays
    a task used within the delay           stays
    a task used before that                renamed under its lock, then deleted
    a directory renamed by any process     deleted: the process that renamed it has died
    anything else                          stays: it is not ours
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from state.directory import LOCK_FILE, REMOVED, StateDirectory, is_task_directory
from state.errors import DirectoryLocked, StateError
from state.locks import ProcessFileLock

log = logging.getLogger(__name__)


def delete_unused_tasks(
    state_directory: StateDirectory, *, now_ms: int, delay_ms: int, kept_tasks: Collection[str]
) -> list[str]:
    """Delete the directories of tasks that nobody on this machine has run for `delay_ms`.

    `now_ms` is the wall-clock time; `kept_tasks` names the tasks that this process has or is about
    to get. Returns the names of those deleted. What can't be deleted is logged, and stays for the
    next time (Kafka Streams' StateDirectory.cleanRemovedTasks).
    """
    removed = []
    for path in sorted(state_directory.path.iterdir()):
        try:
            if path.name.startswith(REMOVED):
                shutil.rmtree(path)
            elif not is_task_directory(path.name) or path.name in kept_tasks:
                continue
            elif _try_delete_unused(state_directory, path, now_ms - delay_ms):
                removed.append(path.name)
        except FileNotFoundError:
            continue  # another process has deleted it
        except (OSError, StateError) as error:
            log.warning("%s can't be cleaned up: %s", path, error)
    if removed:
        log.info("removed the state of tasks that run elsewhere: %s", ", ".join(removed))
    return removed


@contextmanager
def lock_application(path: Path) -> Iterator[None]:
    """Hold the locks of all worker slots and tasks of an application's directory for a while.

    Raises DirectoryLocked, which names the holder, if a process uses one of them.
    """
    with ExitStack() as held:
        for entry in sorted(path.iterdir()) if path.is_dir() else ():
            if is_task_directory(entry.name) or entry.name.startswith("process-"):
                held.callback(ProcessFileLock(entry / LOCK_FILE, "millrace group reset").release)
        yield


def _try_delete_unused(
    state_directory: StateDirectory, task_path: Path, used_before_ms: int
) -> bool:
    """Delete a task's directory and return True, unless it was used since or is locked."""
    if _find_last_use_ms(task_path) > used_before_ms:
        return False
    try:
        lock = state_directory.lock_task(task_path.name)
    except DirectoryLocked:
        return False
    try:
        # Look again, without the lock's own file: the task may have run since the first look.
        if _find_last_use_ms(task_path, ignored_name=LOCK_FILE) > used_before_ms:
            return False
        aside = task_path.with_name(f"{REMOVED}{task_path.name}-{os.getpid()}")
        task_path.rename(aside)
        shutil.rmtree(aside)
    finally:
        lock.release()
    return True


def _find_last_use_ms(task_path: Path, ignored_name: str | None = None) -> int:
    """Return when the task last ran, in ms since 1970: the newest modification time of its files.

    A database that is open writes now and then, and a lock is touched when it is taken and
    released.
    """
    return max(
        (
            time
            for name, time in _iterate_names_and_modification_times_ms(task_path)
            if name != ignored_name
        ),
        default=0,
    )


def _iterate_names_and_modification_times_ms(task_path: Path) -> Iterator[tuple[str, int]]:
    for entry in os.scandir(task_path):
        yield entry.name, entry.stat().st_mtime_ns // 1_000_000
        if entry.is_dir(follow_symlinks=False):
            for file in os.scandir(entry.path):
                yield file.name, file.stat().st_mtime_ns // 1_000_000
