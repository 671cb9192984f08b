"""Copies: where an object that can be changed has two owners, each gets its own, through bytes.

What a store has been given stands in it as an object until the commit. Whoever else holds that
object, user code above all, could change what is written. Numbers, text and the like need none.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from state.entry import SCALARS
from state.errors import RefusedLate, refused
from state.windowed import Windowed
from streams.serdes import Serde
from streams.topology.nodes import Binding, StoreKind, StoreSpec

Copied = Callable[[Any], Any]


def copier(serde: Serde[Any]) -> Copied:
    """A function that returns another object of the same value; what can't be changed as it is."""
    if serde.binder is not None:
        return deepcopy  # of no topic: its bytes would ask a schema registry
    serialize, deserialize = serde.serialize, serde.deserialize

    def copied(value: Any) -> Any:
        if type(value) in SCALARS:
            return value
        return deserialize(serialize(value))

    return copied


def copier_into(spec: StoreSpec) -> Copied:
    """Return a `copier` of what is to go into the store of `spec`. It raises Refused, with the
    store's name, for what its serde refuses."""
    if spec.kind is StoreKind.VERSIONED:
        return as_it_is  # it takes bytes; the others hold the object, which other branches have too
    copied = copier(spec.value)

    def copied_into_store(value: Any) -> Any:
        if type(value) in SCALARS:
            return value
        try:
            return copied(value)
        except Exception as error:
            raise refused(spec.name, "value", value, error) from error

    return copied_into_store


def stored_copier(serde: Serde[Any]) -> Copied:
    """Return a `copier` of what is in a store. It raises RefusedLate for what its serde refuses,
    which is no fault of the record that is being processed."""
    copied = copier(serde)

    def copied_from_store(value: Any) -> Any:
        if type(value) in SCALARS:
            return value
        try:
            return copied(value)
        except MemoryError:
            raise
        except Exception as error:
            raise RefusedLate(
                f"serde {serde.name!r} can't take a store's value {value!r:.200} "
                f"({type(value).__qualname__}): {error}"
            ) from error

    return copied_from_store


def for_those_after(at: Binding, serde: Serde[Any]) -> Copied:
    """What makes of a store's own object one for the steps after: sinks only serialise it."""
    return as_it_is if at.only_sinks_follow else stored_copier(serde)


def keys_for_those_after(at: Binding, spec: StoreSpec) -> Copied:
    """What makes of an entry's key, which is its store's own, one for the steps after."""
    if at.only_sinks_follow:
        return as_it_is
    copied = copier(spec.key)
    of_windows = spec.kind in (StoreKind.WINDOW, StoreKind.SESSION)

    def own(key: Any) -> Any:
        if type(key) in SCALARS or (type(key) is Windowed and type(key.key) in SCALARS):
            return key
        return replace(key, key=copied(key.key)) if of_windows else copied(key)

    return own


def as_it_is(value: Any) -> Any:
    return value
