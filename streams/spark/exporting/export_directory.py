"""Keep a directory of exports; a rename adds each export to it as a whole or not at all.

    DIR/export=00000001/_manifest.json
    DIR/export=00000001/topic=T/partition=0/FIRST-UNTIL.parquet
    DIR/_writing-00000002.SOME-ID/...       being written, or left by an export that was killed
    DIR/_lock                               held by the process that is exporting

Spark and Hive look into no directory whose name begins with `_` (Spark does where there is a `=` in
it), so nobody takes an unfinished export for a complete one. A directory is renamed once all in it
is on the disk, the manifest last.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streams.command_lines import format_command
from streams.errors import ConfigError
from streams.spark.exporting.manifest import MANIFEST_NAME, ExportManifest

_LOCK_NAME = "_lock"
_EXPORT_NAME = re.compile(r"export=(\d{8,})")
_UNFINISHED_NAME = re.compile(r"_writing-\d{8,}\.[0-9a-f]+")


def build_export_path(directory: Path, number: int) -> Path:
    """Return the path of an export by its number."""
    return directory / f"export={number:08}"


@dataclass(frozen=True, slots=True)
class ManifestChain:
    """Represents the readable manifests of a directory in order, and the problems found in it."""

    manifests: tuple[ExportManifest, ...]
    problems: tuple[str, ...]


def read_manifest_chain(directory: Path) -> ManifestChain:
    """Read the manifests of a directory, each checked against itself and the one before.

    Raises ConfigError if the directory can't be read.
    """
    try:
        names = sorted(path.name for path in directory.iterdir())
    except OSError as error:
        raise ConfigError(f"no export in {directory}: {error.strerror}") from error
    numbers = sorted(int(found[1]) for name in names if (found := _EXPORT_NAME.fullmatch(name)))
    manifests: list[ExportManifest] = []
    wrong: list[str] = []
    for missing in sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers)):
        wrong.append(f"{build_export_path(directory, missing).name} is missing")
    for number in numbers:
        path = build_export_path(directory, number) / MANIFEST_NAME
        try:
            manifest = ExportManifest.from_json(path.read_bytes(), str(path))
        except OSError as error:
            wrong.append(f"{path} can't be read: {error.strerror}")
            continue
        except ConfigError as error:
            wrong.append(str(error))
            continue
        if manifest.number != number:
            wrong.append(f"{path} is the manifest of export {manifest.number}")
            continue
        before = manifests[-1] if manifests and manifests[-1].number == number - 1 else None
        if (number == 1) != (manifest.previous is None) or (
            before is not None and manifest.previous != before.sha256
        ):
            wrong.append(f"{path} does not go on from the export before it: the chain is broken")
        manifests.append(manifest)
    return ManifestChain(tuple(manifests), tuple(wrong))


def read_complete_manifests(directory: Path) -> tuple[ExportManifest, ...]:
    """Read the manifests of a directory; raise ConfigError if anything is wrong with them."""
    chain = read_manifest_chain(directory)
    if chain.problems:
        verify = format_command("export", "--verify", str(directory))
        raise ConfigError(f"{chain.problems[0]}; {verify} tells all")
    return chain.manifests


def is_reserved_name(name: str) -> bool:
    """Return whether a name is the lock's or that of an unfinished export."""
    return name == _LOCK_NAME or _UNFINISHED_NAME.fullmatch(name) is not None


@contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, so that one export is written to it at a time.

    Unfinished exports of killed processes are removed when the block begins, and that of this
    process when it ends, also if the disk is full. Raises ConfigError while another process holds
    the lock, or where the directory can't be used.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        held = (directory / _LOCK_NAME).open("a+")
    except OSError as error:
        raise ConfigError(f"can't export to {directory}: {error.strerror}") from error
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            raise ConfigError(
                f"process {held.read() or '?'} is exporting to {directory}: wait until it has "
                "ended, or export to another directory"
            ) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        _remove_unfinished(directory)
        try:
            yield
        finally:
            _remove_unfinished(directory)


def _remove_unfinished(directory: Path) -> None:
    """Remove the directories of unfinished exports."""
    for path in directory.iterdir():
        if _UNFINISHED_NAME.fullmatch(path.name):  # A task that was given up may still write there.
            shutil.rmtree(path, ignore_errors=True)


def create_unfinished_directory(directory: Path, number: int) -> Path:
    """Create a directory to write an export to, under a new name of its own.

    So a worker of an export that was killed writes nothing to it.
    """
    made = directory / f"_writing-{number:08}.{uuid.uuid4().hex}"
    made.mkdir()
    return made


def commit_export(directory: Path, unfinished: Path, manifest: ExportManifest) -> Path:
    """Make an unfinished directory the next export by a rename, and return its new path.

    All of it is there from this moment on, or, if the power fails before, nothing. The data files
    must be on the disk already.
    """
    with (unfinished / MANIFEST_NAME).open("wb") as file:
        file.write(manifest.to_json())
        file.flush()
        os.fsync(file.fileno())
    for path, _, _ in os.walk(unfinished):
        sync_to_disk(Path(path))
    done = build_export_path(directory, manifest.number)
    unfinished.rename(done)
    sync_to_disk(directory)
    return done


def sync_to_disk(path: Path) -> None:
    """Write the data of a file, or the entries of a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
