"""Pair a serialiser with a deserialiser, and bind both to the topic that they are for.

Every serde takes and returns objects that are not None: a null key or value passes all steps as
None and is never handed to a serde.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from streams.serdes.described_types import DescribedType

T = TypeVar("T")

KeySerde: TypeAlias = "Serde[Any]"
ValueSerde: TypeAlias = "Serde[Any]"

Field = Literal["key", "value"]
"""The part of a record that a serde is for: a schema registry keeps the two apart."""


@dataclass(frozen=True, slots=True)
class Serde(Generic[T]):
    """Pairs a serialise with a deserialise function; either may raise any error on bad input.

    The name is for messages. `binder` is for serdes that must know their topic, as those with a
    schema registry do.

    >>> serdes.string.serialize("Grüße").hex()
    '4772c3bcc39f65'
    >>> serdes.int64.deserialize(bytes(8))
    0
    """

    name: str
    serialize: Callable[[T], bytes]
    deserialize: Callable[[bytes], T]
    binder: Callable[[str, Field], Serde[T]] | None = dataclasses.field(default=None, repr=False)
    inner: Serde[Any] | None = dataclasses.field(default=None, repr=False)
    """The serde of the key itself, for keys in windows: their partition is chosen by it."""
    message_type: DescribedType | None = dataclasses.field(default=None, repr=False, compare=False)
    """The type of the messages, if it is declared: `millrace plan` compares those of versions."""

    def for_topic(self, topic: str, field: Field) -> Serde[T]:
        """Return the serde for the keys or the values of `topic`, or itself without a `binder`.

        A source, a sink or a store (by its changelog) binds its serdes once.
        """
        return self if self.binder is None else self.binder(topic, field)


def of(
    serialize: Callable[[T], bytes],
    deserialize: Callable[[bytes], T],
    *,
    name: str = "custom",
) -> Serde[T]:
    """Return a serde of two functions, which are never called with None.

    Either may raise any error for what it refuses: a record that can't be read or written is
    reported with it as SerdeError. Kafka's Serdes.serdeFrom.

    >>> upper = serdes.of(lambda text: text.upper().encode(), lambda data: data.decode())
    >>> upper.serialize("ann")
    b'ANN'
    """
    return Serde(name, serialize, deserialize)
