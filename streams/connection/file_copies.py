"""Copy the certificates, keys and secrets of a connection, so that all its clients have the same.

A file that is replaced, or only half written, changes nothing for clients that are made later: what
was copied has been checked. librdkafka reads the copies by the paths of open files without a name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from streams.connection.nameless_file import NamelessFile
from streams.connection.settings import FILE_SUFFIX, ConnectionSettings

_ABSENT = "absent"
_LOCATION_SUFFIX = ".location"


def digest_files(settings: ConnectionSettings) -> Mapping[str, str]:
    """Return a digest of each file that the settings name, by the name of its setting."""
    return {
        name: _digest(Path(str(value)))
        for name, value in settings.items()
        if name.endswith((FILE_SUFFIX, _LOCATION_SUFFIX))
    }


def copy_files(settings: ConnectionSettings) -> ConnectionSettings:
    """Return settings with copies in place of files.

    Secrets stand in the settings themselves. Directories, and the authorities of a token provider,
    which librdkafka reads at each token, are left as they are. Raises ConfigError, OSError.
    """
    copied = ConnectionSettings()
    for name, value in settings.items():
        if name.endswith(FILE_SUFFIX):
            plain_name = name.removesuffix(FILE_SUFFIX)
            copied[plain_name] = settings.read_secret(plain_name)
        elif _is_copied(name, value) and settings.uses_tls:
            copied[name] = NamelessFile(Path(str(value)).read_bytes())
        else:
            copied[name] = value
    return copied


def _is_copied(name: str, value: object) -> bool:
    """Return whether a setting names a file that is read when a client is made."""
    return (
        name.startswith("ssl.") and name.endswith(_LOCATION_SUFFIX) and Path(str(value)).is_file()
    )


def _digest(path: Path) -> str:
    """Return a digest of a file, or of the files in a directory."""
    digest = hashlib.sha256()
    try:
        paths = sorted(path.iterdir()) if path.is_dir() else [path]
        for each in paths:
            if each.is_file() or each is path:
                digest.update(each.read_bytes() + b"\0")
    except OSError:
        return _ABSENT
    return digest.hexdigest()
