"""Copy the certificates, keys and secrets of a connection, so that all its clients have the same.

A file that is replaced, or only half written, changes nothing for clients that are made later: what
was copied has been checked. librdkafka reads the copies by their paths; on Linux they are open
files without a name.
"""

from __future__ import annotations

from pathlib import Path

from state.linux_calls import PrivateFile
from streams.connection.settings import FILE_SUFFIX, LOCATION_SUFFIX, ConnectionSettings


def copy_files_into_settings(settings: ConnectionSettings) -> ConnectionSettings:
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
            copied[name] = PrivateFile(Path(str(value)).read_bytes(), "millrace-connection")
        else:
            copied[name] = value
    return copied


def _is_copied(name: str, value: object) -> bool:
    """Return whether a setting names a file that is read when a client is made."""
    return name.startswith("ssl.") and name.endswith(LOCATION_SUFFIX) and Path(str(value)).is_file()
