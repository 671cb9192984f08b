"""Serde: a pair of functions, and how it is bound to the topic that it writes and reads.

Every serde takes and gives objects that are not None: a null key or value passes all steps as None
and is never handed to a serde.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

T = TypeVar("T")

Field = Literal["key", "value"]
"""What a serde is for: a schema registry keeps the two apart."""


@dataclass(frozen=True, slots=True)
class Serde(Generic[T]):
    """A pair of functions and a name for messages. Either raises what it likes on bad input.

    `binder` is for serdes that must know their topic, as those with a schema registry do.
    """

    name: str
    serialize: Callable[[T], bytes]
    deserialize: Callable[[bytes], T]
    binder: Callable[[str, Field], Serde[T]] | None = dataclasses.field(default=None, repr=False)
    inner: Serde[Any] | None = dataclasses.field(default=None, repr=False)
    """Of keys in windows: the serde of the key itself, by which their partition is chosen."""

    def for_topic(self, topic: str, field: Field) -> Serde[T]:
        """The serde to use for the keys or the values of `topic`: itself, where the topic does
        not matter. Whoever binds a source, a sink or a store (by its changelog) asks once."""
        return self if self.binder is None else self.binder(topic, field)


def of(
    serialize: Callable[[T], bytes],
    deserialize: Callable[[bytes], T],
    *,
    name: str = "custom",
) -> Serde[T]:
    """A serde from two functions."""
    return Serde(name, serialize, deserialize)


def shown(value: object) -> str:
    """The type and the beginning of a value, for messages."""
    return f"{type(value).__name__}: {value!r:.200}"
