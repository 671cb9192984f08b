"""Give a test a small disk of its own, which can be full or slow: a file with ext4, mounted.

It needs root, mkfs.ext4 and the kernel's loop devices; without them a test is skipped.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

_CGROUP = Path("/sys/fs/cgroup/blkio")
"""The hierarchy of cgroup v1 in which writes to a device can be limited."""


class LoopDisk:
    """Represents a mounted disk of `size_bytes`, until `exits` is closed."""

    def __init__(self, exits: ExitStack, size_bytes: int) -> None:
        directory = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="millrace-disk-")))
        image, self.path = directory / "image", directory / "mounted"
        with image.open("wb") as file:
            file.truncate(size_bytes)
        self.path.mkdir()
        commands: tuple[list[str | Path], ...] = (
            ["mkfs.ext4", "-q", "-m", "0", image],
            ["mount", "-o", "loop", image, self.path],
        )
        for command in commands:
            try:
                subprocess.run(command, check=True, capture_output=True, text=True)
            except (OSError, subprocess.CalledProcessError) as error:
                pytest.skip(f"no disk of a file: {error}")
        exits.callback(lambda: subprocess.run(["umount", "-l", self.path], check=True))

    @contextmanager
    def limit_writes(self, pid: int, per_second: int) -> Iterator[None]:
        """Let a process, and what it starts, write to the disk so many times a second."""
        device = self.path.stat().st_dev
        group = _CGROUP / f"millrace-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            pytest.skip(f"no cgroup that limits writes: {error}")
        try:
            limit = f"{os.major(device)}:{os.minor(device)} {per_second}"
            (group / "blkio.throttle.write_iops_device").write_text(limit)
            (group / "cgroup.procs").write_text(str(pid))
            yield
        finally:
            (_CGROUP / "cgroup.procs").write_text(str(pid))
            group.rmdir()

    def fill(self) -> Path:
        """Write a file until nothing more fits, and return it."""
        path = self.path / "filling"
        with path.open("wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue
        return path
