"""The state directory of a driver: its own, gone at the end; and what kill -9 leaves of it.

It is made with the first store that has a disk. A killed process leaves its files as they are at
that moment: so they are copied before the databases are closed, which would put them in order.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from weakref import finalize

from state.directory import StateDirectory
from state.locks import Lock
from state.subtopologies import Contents

_ATTEMPTS = 1_000


class Scratch(StateDirectory):
    """Directories of tasks below a temporary directory. Nothing of its base is used: there is no
    other process that could want them."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._life = 0

    def number_subtopologies(self, wanted: Mapping[int, Contents]) -> dict[int, int]:
        return {number: number for number in wanted}

    def stores_in(self, task: str) -> frozenset[str]:
        return frozenset()

    def lock_task(self, task: str) -> Lock:
        return _Alone()

    def store_path(self, task: str, store: str) -> Path:
        return self._life_path() / task / store

    def global_path(self, slot: int, store: str) -> Path:
        return self._life_path() / "global" / store

    def _life_path(self) -> Path:
        if self._root is None:
            self._root = Path(mkdtemp(prefix="millrace-driver-"))
            self._removal = finalize(self, _remove, self._root)
        return self._root / f"life-{self._life}"

    def killed(self) -> Path | None:
        """From now on the directory is a copy of what is there now. Returns the old one, which is
        to be removed when nobody has it open any more."""
        self._life += 1
        if self._root is None:
            return None
        before, after = (self._root / f"life-{n}" for n in (self._life - 1, self._life))
        if before.exists():
            _copy_at_one_moment(before, after)
        return before

    def remove(self) -> None:
        if self._root is not None:
            self._removal()


def _remove(directory: Path) -> None:
    """Of a driver that nobody has closed the databases are open, and may add a file meanwhile."""
    for _ in range(_ATTEMPTS):
        if not directory.exists():
            return
        shutil.rmtree(directory, ignore_errors=True)


def _copy_at_one_moment(source: Path, target: Path) -> None:
    """Nobody writes; but RocksDB may be compacting, which adds files and removes others. So what
    was copied counts only if nothing has changed meanwhile."""
    for _ in range(_ATTEMPTS):
        there = _files(source)
        with suppress(shutil.Error):
            shutil.copytree(source, target)
            if there == _files(source):
                return
        shutil.rmtree(target)
    raise RuntimeError(f"{source} goes on changing: it can't be copied as it is")


def _files(directory: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and times."""
    found = []
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            with suppress(FileNotFoundError):
                about = os.stat(path)
                found.append((path, about.st_size, about.st_mtime_ns))
    return sorted(found)


class _Alone(Lock):
    """A lock that nobody else could want."""

    def __init__(self) -> None:
        """Nothing is taken."""

    def release(self) -> None:
        """Nothing was."""
