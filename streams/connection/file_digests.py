"""Digest the files of a connection, so that a change of one is noticed.

A file counts as unchanged while its times, its size and its inode are the same; those of a link are
those of what it leads to. So a volume of Kubernetes, whose links lead through `..data`, which is
replaced as a whole, is followed like a file that is written anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from streams.connection.settings import FILE_SUFFIX, LOCATION_SUFFIX, ConnectionSettings

SettingName: TypeAlias = str

_ABSENT = "absent"
_SETTLED_AFTER_S = 2.0
"""The seconds after which a second change of a file would show in its times: the coarsest clock of
a file system that is in use has steps of two seconds."""

_Signature = tuple[tuple[str, int, int, int, int], ...]
ReadFile = Callable[[Path], bytes]
"""Reads a whole file. Raises OSError."""


def digest_files(settings: ConnectionSettings) -> Mapping[str, str]:
    """Return a digest of each file that the settings name, by the name of its setting."""
    return {
        name: _digest_paths_or_mark_absent(paths, Path.read_bytes)
        for name, paths in _list_files_of_settings(settings)
    }


@dataclass(frozen=True, slots=True)
class _KnownDigest:
    """Holds the digest of files, their signature, and whether that would show the next change."""

    digest: str
    signature: _Signature
    seen_at_s: float
    is_settled: bool


class FileDigests:
    """Digests the files of a connection at each call, and reads those only that have changed."""

    def __init__(
        self,
        settings: ConnectionSettings,
        monotonic_s: Callable[[], float],
        read_file: ReadFile = Path.read_bytes,
    ) -> None:
        self._settings = settings
        self._monotonic_s = monotonic_s
        self._read_file = read_file
        self._known: dict[str, _KnownDigest] = {}

    def digest_files(self) -> Mapping[str, str]:
        """Return a digest of each file that the settings name, by the name of its setting."""
        for name, paths in _list_files_of_settings(self._settings):
            self._known[name] = self._digest_changed(paths, self._known.get(name))
        return {name: known.digest for name, known in self._known.items()}

    def _digest_changed(self, paths: list[Path], known: _KnownDigest | None) -> _KnownDigest:
        """Return the digests of files, which are read again unless they are surely the same."""
        # Before they are read: what changes meanwhile has another signature at the next call.
        signature = _stat_existing_paths(paths)
        now_s = self._monotonic_s()
        if known is None or known.signature != signature:
            return _KnownDigest(
                self._digest_paths_or_mark_absent(paths), signature, now_s, is_settled=False
            )
        if known.is_settled:
            return known
        is_settled = now_s - known.seen_at_s >= _SETTLED_AFTER_S
        digest = self._digest_paths_or_mark_absent(paths)
        return _KnownDigest(digest, signature, known.seen_at_s, is_settled)

    def _digest_paths_or_mark_absent(self, paths: list[Path]) -> str:
        return _digest_paths_or_mark_absent(paths, self._read_file)


def _list_files_of_settings(settings: ConnectionSettings) -> list[tuple[SettingName, list[Path]]]:
    """Return the files of each setting that names some: a file, or those in a directory."""
    return [
        (name, _list_files(Path(str(value))))
        for name, value in settings.items()
        if name.endswith((FILE_SUFFIX, LOCATION_SUFFIX))
    ]


def _list_files(path: Path) -> list[Path]:
    """Return the files in a directory, or the path itself if it isn't one."""
    try:
        return sorted(each for each in path.iterdir() if each.is_file())
    except OSError:
        return [path]


def _stat_existing_paths(paths: list[Path]) -> _Signature:
    """Return paths, times, sizes and inodes of the files that exist, to notice when one changes."""
    found = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        times = status.st_mtime_ns, status.st_ctime_ns
        found.append((str(path), *times, status.st_size, status.st_ino))
    return tuple(found)


def _digest_paths_or_mark_absent(paths: list[Path], read_file: ReadFile) -> str:
    """Return a digest of what the files hold, one after another."""
    digest = hashlib.sha256()
    try:
        for path in paths:
            digest.update(read_file(path) + b"\0")
    except OSError:
        return _ABSENT
    return digest.hexdigest()
