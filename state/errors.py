"""What can go wrong with state, named by what happens next."""

from __future__ import annotations


class StateError(Exception):
    """The state directory or a store can't be used; the message says which and what to do."""


class Refused(StateError):
    """A store's serde refused a key or a value; the message names the store."""


class DirectoryLocked(StateError):
    """Another process holds the directory. It will be free when that process closes it or dies."""


class Corrupt(StateError):
    """A store's database can't be read: it is to be cleared, and rebuilt from the changelog.

    `store` is its name, `path` its directory, `reason` what RocksDB said.
    """

    def __init__(self, store: str, path: object, reason: str) -> None:
        super().__init__(f"store {store!r} in {path} is damaged: {reason}")
        self.store = store
        self.path = path
        self.reason = reason


class RefusedLate(Refused):
    """The serde refuses a value that was written before: by which record is not known."""


def refused(store: str, what: str, given: object, error: Exception) -> Refused:
    """Return the error that says which key or value (`what`) the serde of `store` has refused.

    Raises `error` itself if it is MemoryError: the machine is in trouble, and not the record wrong.
    """
    if isinstance(error, MemoryError):
        raise error
    of = f" ({type(given).__qualname__})" if what == "value" else ""
    return Refused(f"store {store!r} can't take {what} {given!r:.200}{of}: {error}")
