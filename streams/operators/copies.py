"""Copies: where an object that can be changed has two owners, each gets its own, through bytes.

What a store has been given stands in it as an object until the commit. Whoever else holds that
object, user code above all, could change what is written. Numbers, text and the like need none.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from state.entry import SCALARS
from streams.serdes import Serde
from streams.topology.nodes import Binding

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


def for_those_after(at: Binding, serde: Serde[Any]) -> Copied:
    """What makes of a store's own object one for the steps after: sinks only serialise it."""
    return as_it_is if at.only_sinks_follow else copier(serde)


def as_it_is(value: Any) -> Any:
    return value
