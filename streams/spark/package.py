"""Package Millrace as one zip for a Spark cluster: `python -m streams.spark.package millrace.zip`.

    spark-submit --py-files millrace.zip program.py

The packages that executors import by name are pure Python, so Spark can ship them with a program.
Their dependencies (confluent-kafka, orjson, pyarrow) are compiled for a machine: they have to be
installed where the executors run (docs/spark.md, On a cluster).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import streams
from streams.common.counted import format_count
from streams.common.exit_status import ExitStatus
from streams.errors import ConfigError, UserError

FileCount: TypeAlias = int

_PACKAGES = ("coordinator", "millrace", "state", "streams")
_SOURCE_ROOT = Path(streams.__file__).parents[1]
_ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the zip: a constant, so that the same sources give the same bytes."""


def zip_package(target: Path) -> FileCount:
    """Write the Python packages to a zip and return how many files are in it.

    Raises ConfigError for a name that Spark would not take for a package, or that can't be written.
    """
    if target.suffix != ".zip":
        raise ConfigError(
            f"{target}: --py-files takes a package by its name, which must end in .zip"
        )
    files = list(_list_source_files())
    beside = target.with_name(target.name + ".part")
    try:
        with ZipFile(beside, "w", ZIP_DEFLATED) as archive:
            for path in files:
                entry = ZipInfo(str(path.relative_to(_SOURCE_ROOT)), _ENTRY_TIME)
                entry.compress_type = ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
        beside.replace(target)
    except OSError as error:
        raise ConfigError(f"{target} can't be written: {error.strerror}") from error
    return len(files)


def _list_source_files() -> Iterator[Path]:
    """Yield every file of the packages except compiled ones, in the same order each time."""
    for name in _PACKAGES:
        for path in sorted((_SOURCE_ROOT / name).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                yield path


def main(arguments: list[str]) -> ExitStatus:
    """Write the package and return the exit status: 0, or 2 for an error that the user can mend."""
    if len(arguments) != 1:
        sys.stderr.write("python -m streams.spark.package TO.zip\n")
        return 2
    try:
        count = zip_package(Path(arguments[0]))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{arguments[0]}: {format_count(count, 'file')}, for --py-files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
