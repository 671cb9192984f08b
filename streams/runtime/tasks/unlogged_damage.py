"""Refuse a store without a changelog that can't be used: nothing could fill it again."""

from __future__ import annotations

from pathlib import Path

from state.errors import StoreCorrupted
from state.store import StateStore
from streams.errors import StreamsError


def refuse_damaged_store(name: str, store: StateStore, path: Path) -> None:
    """Close and refuse an opened store in `path` that is damaged or has another layout.

    Raises StreamsError.
    """
    try:
        reason = store.rebuild_reason
        store.raise_if_corrupted()
    except StoreCorrupted as damage:
        reason = str(damage)
    if reason:
        store.close()
        reason = reason if str(path) in reason else f"{reason}, in {path}"
        raise StreamsError(explain_unlogged_damage(name, reason))


def explain_unlogged_damage(name: str, reason: str) -> str:
    """Return why a store without a changelog is refused that can't be used for `reason`."""
    return (
        f"store {name!r} has no changelog that could fill it again, and is left as it is: {reason}."
        " Go on with the declaration that wrote it, if that was changed, or with a copy of its "
        "directory; or remove the directory to begin with an empty store"
    )
