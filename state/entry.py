"""Represent a store's entries in a transaction, and estimate the memory that values take."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

K = TypeVar("K")
V = TypeVar("V")

_SAMPLE = 8
_DEPTH = 4
SCALARS = frozenset(
    (
        *(int, float, bool, complex, str, bytes, type(None)),
        *(date, datetime, time, timedelta, Decimal, UUID),
    )
)
"""Types whose values can't be changed in place."""


@dataclass(slots=True, eq=False)
class StoreEntry(Generic[K, V]):
    """Represents a key's current value in the transaction; None is no value or a deleted one.

    It belongs to the transaction: nobody may keep it beyond.
    """

    key: K
    value: V | None
    timestamp_ms: int
    stored: bytes | None
    """The bytes on disk; None: there are none; empty: they have not been read."""
    used: int = 0
    """The number of the commit at which the cache had it last; 0: it never had."""


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """Represents a value with the timestamp in ms of the record that wrote it."""

    value: V
    timestamp_ms: int


def to_value_and_timestamp(entry: StoreEntry[K, V] | None) -> ValueAndTimestamp[V] | None:
    """Return the value and timestamp of an entry, or None if it has no value."""
    if entry is None or entry.value is None:
        return None
    return ValueAndTimestamp(entry.value, entry.timestamp_ms)


def is_immutable(value: object) -> bool:
    """Return whether `value` can't be changed in place.

    Scalars can't, nor can tuples, frozen sets and frozen dataclasses of such.
    """
    kind = type(value)
    if kind in SCALARS:
        return True
    if isinstance(value, (tuple, frozenset)):
        return kind in (tuple, frozenset) and all(map(is_immutable, value))
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return False
    held: Any = value
    parts = [getattr(held, field.name) for field in dataclasses.fields(held)]
    parts += getattr(held, "__dict__", {}).values()
    return all(map(is_immutable, parts))


def estimate_size_bytes(value: object, max_depth: int = _DEPTH) -> int:
    """Return about how many bytes of memory `value` takes together with what it holds.

    Of large collections a few elements stand for all; below `max_depth` levels nothing is counted.
    """
    size = sys.getsizeof(value)
    if max_depth == 0 or type(value) in SCALARS or isinstance(value, Enum):
        return size  # what a member of an enumeration holds, all values share
    if isinstance(value, dict):
        return size + _estimate_elements_bytes(
            (x for item in value.items() for x in item), 2 * len(value), max_depth
        )
    if isinstance(value, (list, tuple, set, frozenset)):
        return size + _estimate_elements_bytes(value, len(value), max_depth)
    held = getattr(value, "__dict__", None)
    if held is not None:
        size += estimate_size_bytes(held, max_depth - 1)
    slots = getattr(type(value), "__slots__", ())
    return size + sum(
        estimate_size_bytes(getattr(value, name, None), max_depth - 1) for name in slots
    )


def _estimate_elements_bytes(elements: Iterable[object], count: int, depth: int) -> int:
    # Most elements are scalars, and calls are what takes time here.
    sizes = [
        sys.getsizeof(part) if type(part) in SCALARS else estimate_size_bytes(part, depth - 1)
        for part in islice(elements, _SAMPLE)
    ]
    return sum(sizes) * count // len(sizes) if sizes else 0
