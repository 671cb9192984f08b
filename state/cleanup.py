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
from pathlib import Path

from state.directory import LOCK_FILE, REMOVED, StateDirectory, is_task
from state.errors import DirectoryLocked, StateError

log = logging.getLogger(__name__)


def clean(
    directory: StateDirectory, *, now_ms: int, delay_ms: int, keep: Collection[str]
) -> list[str]:
    """Delete the directories of tasks that nobody on this machine has run for `delay_ms`.

    `now_ms` is the wall-clock time; `kept_tasks` names the tasks that this process has or is about
    to get. Returns the names of those deleted. What can't be deleted is logged, and stays for the
    next time (Kafka Streams' StateDirectory.cleanRemovedTasks).
    """
    removed = []
    for path in sorted(directory.path.iterdir()):
        try:
            if path.name.startswith(REMOVED):
                shutil.rmtree(path)
            elif not is_task(path.name) or path.name in keep:
                continue
            elif _remove(directory, path, now_ms - delay_ms):
                removed.append(path.name)
        except FileNotFoundError:
            continue  # another process has deleted it
        except (OSError, StateError) as error:
            log.warning("%s can't be cleaned up: %s", path, error)
    if removed:
        log.info("removed the state of tasks that run elsewhere: %s", ", ".join(removed))
    return removed


def _remove(directory: StateDirectory, path: Path, before_ms: int) -> bool:
    """Delete a task's directory and return True, unless it was used since or is locked."""
    if _used_ms(path) > before_ms:
        return False
    try:
        lock = directory.lock_task(path.name)
    except DirectoryLocked:
        return False
    try:
        # Look again, without the lock's own file: the task may have run since the first look.
        if _used_ms(path, apart_from=LOCK_FILE) > before_ms:
            return False
        aside = path.with_name(f"{REMOVED}{path.name}-{os.getpid()}")
        path.rename(aside)
        shutil.rmtree(aside)
    finally:
        lock.release()
    return True


def _used_ms(task: Path, apart_from: str | None = None) -> int:
    """Return when the task last ran, in ms since 1970: the newest modification time of its files.

    A database that is open writes now and then, and a lock is touched when it is taken and
    released.
    """
    return max((time for name, time in _times(task) if name != apart_from), default=0)


def _times(task: Path) -> Iterator[tuple[str, int]]:
    for entry in os.scandir(task):
        yield entry.name, entry.stat().st_mtime_ns // 1_000_000
        if entry.is_dir(follow_symlinks=False):
            for file in os.scandir(entry.path):
                yield file.name, file.stat().st_mtime_ns // 1_000_000
