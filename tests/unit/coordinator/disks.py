"""Provide a disk in memory that can be cut off from a broker as a crash does it.

After `kill` the disk has every write that returned; after `lose_power` what was flushed: the bytes
of a file as of its last `flush`, the names of a directory as of its last `flush_directory`. A
broker that runs on is cut off: what it still does raises OSError.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.log.disk import DiskLock, DiskSpace, File


@dataclass(eq=False)
class Inode:
    content: bytearray = field(default_factory=bytearray)
    flushed: bytes = b""
    writes: int = 0


class MemoryDisk:
    """Stands in for a `Disk`; `kill` and `lose_power` return the next broker's disk."""

    def __init__(self) -> None:
        self.files: dict[Path, Inode] = {}
        self.directories: set[Path] = set()
        self.locked: set[Path] = set()
        self.is_cut_off = False
        self.bytes_left = 1 << 40
        self.flushed_names: dict[Path, dict[Path, Inode]] = {}  # by directory

    def kill(self) -> MemoryDisk:
        """Return the disk as it is when the process has died and the machine runs on."""
        self.is_cut_off = True
        after = MemoryDisk()
        after.files = self.files
        after.directories = self.directories
        after.flushed_names = self.flushed_names
        return after

    def lose_power(self) -> MemoryDisk:
        """Return the disk as it is after a loss of power, with only what was flushed."""
        self.is_cut_off = True
        after = MemoryDisk()
        after.directories = set(self.directories)
        for directory, names in self.flushed_names.items():
            for path, inode in names.items():
                after.files[path] = Inode(bytearray(inode.flushed), inode.flushed)
            after.flush_directory(directory)
        return after

    def open_file(self, path: Path) -> File:
        self._check(path)
        if path not in self.files:
            self._check_directory(path.parent)
            self.files[path] = Inode()
        return _MemoryFile(self, self.files[path])

    def file_size(self, path: Path) -> int | None:
        self._check(path)
        return len(self.files[path].content) if path in self.files else None

    def read_file(self, path: Path) -> bytes | None:
        self._check(path)
        return bytes(self.files[path].content) if path in self.files else None

    def replace_file(self, path: Path, content: bytes) -> None:
        self._check(path)
        self._check_directory(path.parent)
        inode = Inode(bytearray(content), content)
        self.files[path] = inode
        self.flushed_names.setdefault(path.parent, {})[path] = inode

    def measure_space(self, directory: Path) -> DiskSpace:
        return DiskSpace(1 << 40, 1 << 39)

    def list_names(self, directory: Path) -> list[str]:
        self._check(directory)
        paths = (*self.files, *self.directories)
        return sorted(path.name for path in paths if path.parent == directory)

    def make_directory(self, path: Path) -> None:
        self._check(path)
        self.directories.update((path, *path.parents))

    def flush_directory(self, path: Path) -> None:
        self._check(path)
        self.flushed_names[path] = {
            name: inode for name, inode in self.files.items() if name.parent == path
        }

    def rename_path(self, old: Path, new: Path) -> None:
        self._check(old)
        if old in self.files:
            self.files[new] = self.files.pop(old)
            return
        self._check_directory(old)
        for path in [path for path in self.files if old in path.parents]:
            self.files[new / path.relative_to(old)] = self.files.pop(path)
        self.directories.remove(old)
        self.directories.add(new)
        # Directories are moved by the broker only when what is in them is no longer wanted.
        self.flushed_names.pop(old, None)
        self.flush_directory(new)

    def remove_file(self, path: Path) -> None:
        self._check(path)
        self.files.pop(path, None)

    def remove_tree(self, path: Path) -> None:
        self._check(path)
        for each in [each for each in self.files if path in each.parents]:
            del self.files[each]
        self.directories -= {each for each in self.directories if path in (each, *each.parents)}
        self.flushed_names.pop(path, None)

    def lock_file(self, path: Path) -> DiskLock:
        self._check(path)
        if path in self.locked:
            raise BlockingIOError(errno.EWOULDBLOCK, "locked")
        self.locked.add(path)
        return _MemoryLock(self, path)

    def _check(self, path: Path) -> None:
        if self.is_cut_off:
            raise OSError(errno.EIO, "the disk is gone", str(path))

    def _check_directory(self, path: Path) -> None:
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "No such directory", str(path))


@dataclass
class _MemoryFile:
    disk: MemoryDisk
    inode: Inode

    def write(self, data: bytes | bytearray, position: int) -> None:
        self.disk._check(Path())
        content = self.inode.content
        if position > len(content):
            content += bytes(position - len(content))
        self.inode.writes += 1
        taken = data[: self.disk.bytes_left]
        content[position : position + len(taken)] = taken
        self.disk.bytes_left -= len(taken)
        if len(taken) < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")

    def read(self, count: int, position: int) -> bytes:
        self.disk._check(Path())
        return bytes(self.inode.content[position : position + count])

    def size(self) -> int:
        self.disk._check(Path())
        return len(self.inode.content)

    def truncate(self, size: int) -> None:
        self.disk._check(Path())
        content = self.inode.content
        del content[size:]
        content += bytes(size - len(content))

    def flush(self) -> None:
        self.disk._check(Path())
        self.inode.flushed = bytes(self.inode.content)

    def close(self) -> None:
        pass


@dataclass
class _MemoryLock:
    disk: MemoryDisk
    path: Path

    def release(self) -> None:
        self.disk.locked.discard(self.path)
