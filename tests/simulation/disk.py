"""Simulate the page cache and platter of a machine's disk, and how their content is lost.

A write that has returned survives the end of the process. What survives a loss of power is what was
flushed: of a file its bytes, of a directory its names; and of the rest a random part,
the torn end of a file perhaps as zeros.

A broker works on an `Attached` view. `crash_in(n)` ends it in the middle of the n-th change from
now on, and a part of that write may be there; a broker that is gone can't change anything any more.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from coordinator.log.disk import DiskLock, DiskSpace, File


class Crashed(BaseException):
    """Ends the process in the middle of this call; no product code may catch it."""


@dataclass(eq=False, slots=True)
class Inode:
    content: bytearray = field(default_factory=bytearray)
    flushed: bytes = b""
    # What a failed flush has left behind: the system takes it for written, and no later flush
    # brings it to the platter, unless it is written again.
    forgotten: range = range(0)

    def flush(self) -> None:
        flushed = bytearray(self.content)
        flushed[self.forgotten.start : self.forgotten.stop] = bytes(len(self.forgotten))
        self.flushed = bytes(flushed)

    def fail_to_flush(self) -> None:
        start = self.forgotten.start if self.forgotten else len(self.flushed)
        self.forgotten = range(start, max(start, len(self.content)))

    def written(self, start: int, end: int) -> None:
        forgotten = self.forgotten
        if forgotten and start <= forgotten.start < end:
            self.forgotten = range(min(end, forgotten.stop), forgotten.stop)

    def truncated(self) -> None:
        end = len(self.content)
        self.forgotten = range(min(self.forgotten.start, end), min(self.forgotten.stop, end))


class Platter:
    """Holds all files, which outlive a broker."""

    def __init__(self) -> None:
        self.files: dict[Path, Inode] = {}  # written by `put` and `drop`
        self.within: dict[Path, dict[Path, Inode]] = {}  # the same by directory
        self.directories: dict[Path, None] = {}
        self.flushed_names: dict[Path, dict[Path, Inode]] = {}  # by directory
        self.writes = 0

    def put(self, path: Path, inode: Inode) -> Inode:
        self.files[path] = self.within.setdefault(path.parent, {})[path] = inode
        return inode

    def drop(self, path: Path) -> Inode | None:
        self.within.get(path.parent, {}).pop(path, None)
        return self.files.pop(path, None)

    def copy(self) -> Platter:
        """Return another disk with the same content, all of it flushed."""
        twin = Platter()
        twin.directories = dict(self.directories)
        for path, inode in self.files.items():
            twin.put(path, Inode(bytearray(inode.content), bytes(inode.content)))
        return twin

    def lose_power(self, random: Random) -> None:
        """Drop what was not flushed, wholly or in part."""
        found: dict[Path, Inode] = {}
        for directory in self.directories:
            flushed = self.flushed_names.get(directory, {})
            present = self.within.get(directory, {})
            found |= present if random.random() < 0.5 else flushed
        for inode in dict.fromkeys(found.values()):
            inode.content = bytearray(_survived(inode, random))
            inode.flushed = bytes(inode.content)
            inode.forgotten = range(0)
        self.files, self.within = {}, {}
        for path, inode in found.items():
            self.put(path, inode)
        self.flushed_names = {d: dict(self.within.get(d, {})) for d in self.directories}


def _survived(inode: Inode, random: Random) -> bytes:
    content, flushed = inode.content, inode.flushed
    if content.startswith(flushed):
        kept = random.randint(len(flushed), len(content))
        zeros = random.randint(0, len(content) - kept) if random.random() < 0.3 else 0
        return bytes(content[:kept]) + bytes(zeros)
    return flushed if random.random() < 0.5 else bytes(content)


class Attached:
    """Stands in for a `Disk`: one broker's view of the platter, until it crashes."""

    def __init__(self, platter: Platter, random: Random) -> None:
        self.platter = platter
        self.is_gone = False
        self.failing = 0  # of so many of the next writes to logs a part fails
        self._random = random
        self._crash_in: int | None = None
        self._locked: set[Path] = set()

    def crash_in(self, changes: int) -> None:
        """Crash within the nth of the following changes; 1 is the next one."""
        self._crash_in = changes

    def heal(self) -> None:
        """Stop all faults from now on."""
        self.failing = 0
        self._crash_in = None

    def change(self) -> bool:
        """Count a change before it is made; return whether the process ends in it."""
        self.check()
        self.platter.writes += 1
        if self._crash_in is not None:
            self._crash_in -= 1
            return self._crash_in <= 0
        return False

    def crash(self) -> Crashed:
        self.is_gone = True
        return Crashed()

    def check(self) -> None:
        if self.is_gone:
            raise Crashed

    def open_file(self, path: Path) -> File:
        self.check()
        inode = self.platter.files.get(path)
        if inode is None:
            self._check_directory(path.parent)
            inode = self.platter.put(path, Inode())
        return _AttachedFile(self, inode, path.suffix == ".log")

    def file_size(self, path: Path) -> int | None:
        self.check()
        inode = self.platter.files.get(path)
        return None if inode is None else len(inode.content)

    def read_file(self, path: Path) -> bytes | None:
        self.check()
        inode = self.platter.files.get(path)
        return None if inode is None else bytes(inode.content)

    def replace_file(self, path: Path, content: bytes) -> None:
        self._change()
        self._check_directory(path.parent)
        inode = self.platter.put(path, Inode(bytearray(content), bytes(content)))
        self.platter.flushed_names.setdefault(path.parent, {})[path] = inode

    def measure_space(self, directory: Path) -> DiskSpace:
        return DiskSpace(1 << 40, 1 << 39)

    def list_names(self, directory: Path) -> list[str]:
        self.check()
        within = (d for d in self.platter.directories if d.parent == directory)
        return sorted(path.name for path in (*self.platter.within.get(directory, ()), *within))

    def make_directory(self, path: Path) -> None:
        self.check()
        for each in (path, *path.parents):
            self.platter.directories[each] = None

    def flush_directory(self, path: Path) -> None:
        self._change()
        self.platter.flushed_names[path] = dict(self.platter.within.get(path, {}))

    def rename_path(self, old: Path, new: Path) -> None:
        self._change()
        platter = self.platter
        file = platter.drop(old)
        if file is not None:
            platter.put(new, file)
            return
        self._check_directory(old)
        for path in [path for path in platter.files if old in path.parents]:
            inode = platter.files[path]
            platter.drop(path)
            platter.put(new / path.relative_to(old), inode)
        del platter.directories[old]
        platter.directories[new] = None
        platter.flushed_names[new] = {
            new / path.relative_to(old): inode
            for path, inode in platter.flushed_names.pop(old, {}).items()
        }

    def remove_file(self, path: Path) -> None:
        self._change()
        self.platter.drop(path)

    def remove_tree(self, path: Path) -> None:
        self._change()
        platter = self.platter
        for each in [each for each in platter.files if path in each.parents]:
            platter.drop(each)
        for each in [each for each in platter.directories if path in (each, *each.parents)]:
            del platter.directories[each]
            platter.flushed_names.pop(each, None)

    def lock_file(self, path: Path) -> DiskLock:
        self.check()
        if path in self._locked:
            raise BlockingIOError(errno.EWOULDBLOCK, "locked")
        self._locked.add(path)
        return _AttachedLock(self._locked, path)

    def fails(self) -> bool:
        """Return whether a write to a log fails now."""
        if not self.failing:
            return False
        self.failing -= 1
        return self._random.random() < 0.4

    def torn(self, data: bytes | bytearray) -> bytes | bytearray:
        """Return the part of an interrupted write that is on the disk."""
        return data[: self._random.randint(0, len(data))]

    def _change(self) -> None:
        if self.change():
            raise self.crash()

    def _check_directory(self, path: Path) -> None:
        if path not in self.platter.directories:
            raise FileNotFoundError(errno.ENOENT, "No such directory", str(path))


class _AttachedFile:
    def __init__(self, disk: Attached, inode: Inode, is_log: bool) -> None:
        self._disk = disk
        self._inode = inode
        self._is_log = is_log

    def write(self, data: bytes | bytearray, position: int) -> None:
        disk = self._disk
        if disk.change():
            self._put(disk.torn(data), position)
            raise disk.crash()
        if self._is_log and disk.fails():
            self._put(disk.torn(data), position)
            raise OSError(errno.ENOSPC, "no room")
        self._put(data, position)

    def _put(self, data: bytes | bytearray, at: int) -> None:
        content = self._inode.content
        if at > len(content):
            content += bytes(at - len(content))
        content[at : at + len(data)] = data
        self._inode.written(at, at + len(data))

    def read(self, count: int, position: int) -> bytes:
        self._disk.check()
        return bytes(self._inode.content[position : position + count])

    def size(self) -> int:
        self._disk.check()
        return len(self._inode.content)

    def truncate(self, size: int) -> None:
        if self._disk.change():
            raise self._disk.crash()
        content = self._inode.content
        del content[size:]
        content += bytes(size - len(content))
        self._inode.truncated()

    def flush(self) -> None:
        if self._disk.change():
            raise self._disk.crash()
        if self._is_log and self._disk.fails():
            self._inode.fail_to_flush()
            raise OSError(errno.EIO, "not flushed")
        self._inode.flush()

    def close(self) -> None:
        pass


@dataclass(slots=True)
class _AttachedLock:
    locked: set[Path]
    path: Path

    def release(self) -> None:
        self.locked.discard(self.path)
