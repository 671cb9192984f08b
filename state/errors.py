"""Define the errors of stores and of the state directory, a class for each way to recover."""

from __future__ import annotations

import re

from state.shown_values import hide_values, quote_value, read_text_safely

_NOT_TEXT = re.compile(r"descriptor 'encode' for 'str' objects doesn't apply to an? '(.*)' object")
"""What `str.encode` says of an object that is no str: it is the string serde itself."""


class StateError(Exception):
    """Reports that the state directory or a store can't be used, with its name and what to do."""


class StoreSerdeError(StateError):
    """Reports that a store's serde refused a key or a value; the message names the store."""


class DirectoryLocked(StateError):
    """Reports that another process holds the directory, which is free once that process ends."""


class StoreCorrupted(StateError):
    """Reports that a store's database is damaged and must be rebuilt from the changelog.

    `store` is its name, `path` its directory, `reason` the error that RocksDB gave.
    """

    def __init__(self, store: str, path: object, reason: str) -> None:
        super().__init__(f"store {store!r} in {path} is damaged: {reason}")
        self.store = store
        self.path = path
        self.reason = reason


class EarlierWriteRefused(StoreSerdeError):
    """Reports that the serde refuses a value of an earlier record, and which one is not known."""


def describe_serde_error(error: Exception) -> str:
    """Return the message of a serde's error, with a hint where it was given no str."""
    text = read_text_safely(error)
    if found := _NOT_TEXT.fullmatch(text):
        return (
            f"the string serde takes str, got {found[1]}: convert it, or give the serde of "
            f"{found[1]}"
        )
    return text


def create_store_serde_error(
    store_name: str, role: str, refused_object: object, error: Exception
) -> StoreSerdeError:
    """Return the error that says which key or value (`role`) the serde of `store_name` has refused.

    Raises `error` itself if it is MemoryError: the machine is in trouble, and not the record wrong.
    """
    if isinstance(error, MemoryError):
        raise error
    of = f" ({type(refused_object).__qualname__})" if role == "value" else ""
    return StoreSerdeError(
        f"store {store_name!r} can't take {role} {quote_value(refused_object)}{of}: "
        f"{hide_values(describe_serde_error(error), error, refused_object)}"
    )
