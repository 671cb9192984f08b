"""Put the files of an empty database in place, so that it is opened in a moment.

RocksDB makes a new database with some fifteen waits for the disk, and rocksdict lets no other
thread of Python run meanwhile: beside a busy disk, all tasks of a worker that opened the store of
one stood still for a second and more. The files of an empty database are the same each time: they
are made once in a process, on a disk in memory where there is one, and then only written. Where a
power failure leaves a part of them RocksDB makes a new database, or finds it damaged: nothing was
in it.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rocksdict import Options, Rdict

from state.linux_calls import find_memory_file_system
from state.rocksdb.options import DATA_FAMILY, OFFSETS_FAMILY

log = logging.getLogger(__name__)

_CURRENT = "CURRENT"
"""The file that names the manifest: with it, a directory is a database."""
_KEPT = ("IDENTITY", "MANIFEST-")


def place_empty_database(path: Path) -> None:
    """Write the files of an empty database to a directory, unless anything is in it.

    It has the column families of a store. Where none can be made elsewhere, as all memory is taken
    and no other directory can be written, nothing is placed: RocksDB makes the database where it
    belongs. Raises OSError.
    """
    if next(path.iterdir(), None) is not None:
        return
    try:
        files = _read_empty_database()
    except Exception as error:  # rocksdict raises Exception itself
        log.info("databases are not made in a moment, since none was made elsewhere: %s", error)
        return
    for name, content in files.items():
        (path / name).write_bytes(content)


@cache
def _read_empty_database() -> Mapping[str, bytes]:
    """Return the content of the files that make an empty database; `CURRENT` is the last."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    families = {name: Options(raw_mode=True) for name in (DATA_FAMILY, OFFSETS_FAMILY)}
    with tempfile.TemporaryDirectory(dir=find_memory_file_system()) as directory:
        Rdict(directory, options, column_families=families).close()
        files = [each for each in Path(directory).iterdir() if each.name.startswith(_KEPT)]
        found = {each.name: each.read_bytes() for each in files}
        return {**found, _CURRENT: (Path(directory) / _CURRENT).read_bytes()}
