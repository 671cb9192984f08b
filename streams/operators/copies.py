"""Copy mutable objects that would have two owners, by serialising and deserialising them.

An object that was put into a store stays there as an object until the commit. Anybody else who
holds it, user code above all, could change what is written. Numbers, text and the like need no
copy.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from state.entry import SCALARS
from state.errors import EarlierWriteRefused, create_store_serde_error, describe_serde_error
from state.shown_values import hide_values, quote_value
from state.windowed import Windowed
from streams.graph.nodes import Binding, StoreKind, StoreSpec
from streams.serdes import Serde

CopyFunction = Callable[[Any], Any]


def create_copier(serde: Serde[Any]) -> CopyFunction:
    """Return a function that copies a value by `serde`, or returns a scalar as it is."""
    if serde.binder is not None:
        return deepcopy  # it is bound to no topic: serialising would need a schema registry
    serialize, deserialize = serde.serialize, serde.deserialize

    def copy_value(value: Any) -> Any:
        if type(value) in SCALARS:
            return value
        return deserialize(serialize(value))

    return copy_value


def create_copier_into(store_spec: StoreSpec) -> CopyFunction:
    """Return a function that copies a value before it is written to the store of `store_spec`.

    It raises StoreSerdeError, with the store's name, for a value that the store's serde refuses.
    """
    if store_spec.kind is StoreKind.VERSIONED:
        # It keeps bytes; other stores keep the object, which other branches have too.
        return return_unchanged
    copy_value = create_copier(store_spec.value)

    def copied_into_store(value: Any) -> Any:
        if type(value) in SCALARS:
            return value
        try:
            return copy_value(value)
        except Exception as error:
            raise create_store_serde_error(store_spec.name, "value", value, error) from error

    return copied_into_store


def create_stored_copier(serde: Serde[Any]) -> CopyFunction:
    """Return a function that copies a value read from a store.

    It raises EarlierWriteRefused for a value that the serde refuses: the record that is being
    processed is not at fault.
    """
    copy_value = create_copier(serde)

    def copied_from_store(value: Any) -> Any:
        if type(value) in SCALARS:
            return value
        try:
            return copy_value(value)
        except MemoryError:
            raise
        except Exception as error:
            raise EarlierWriteRefused(
                f"serde {serde.name!r} can't take a store's value {quote_value(value)} "
                f"({type(value).__qualname__}): "
                f"{hide_values(describe_serde_error(error), error, value)}"
            ) from error

    return copied_from_store


def create_downstream_copier(binding: Binding, serde: Serde[Any]) -> CopyFunction:
    """Return a function that copies a value in a store before it is forwarded downstream.

    If only sinks follow it returns the value itself: they only serialise it.
    """
    return return_unchanged if binding.only_sinks_follow else create_stored_copier(serde)


def create_downstream_key_copier(binding: Binding, store_spec: StoreSpec) -> CopyFunction:
    """Return a function that copies the key of a store's entry before it is forwarded downstream.

    If only sinks follow it returns the key itself: they only serialise it.
    """
    if binding.only_sinks_follow:
        return return_unchanged
    copy_inner = create_copier(store_spec.key)
    of_windows = store_spec.kind in (StoreKind.WINDOW, StoreKind.SESSION)

    def copy_key(key: Any) -> Any:
        if type(key) in SCALARS or (type(key) is Windowed and type(key.key) in SCALARS):
            return key
        return replace(key, key=copy_inner(key.key)) if of_windows else copy_inner(key)

    return copy_key


def return_unchanged(value: Any) -> Any:
    """Return `value` itself: the copy function for values that need no copy."""
    return value
