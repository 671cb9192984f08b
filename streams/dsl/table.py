"""Table: the latest value of each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from streams.dsl.builder import Builder
from streams.serdes import Serde
from streams.topology.nodes import Node

if TYPE_CHECKING:
    from streams.dsl.stream import Stream

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Table(Generic[K, V]):
    """A step's result by key."""

    _builder: Builder
    _node: Node
    _key: Serde[Any] | None
    _value: Serde[Any] | None

    def to_stream(self) -> Stream[K, V]:
        """The table's updates as a stream."""
        from streams.dsl.stream import Stream  # a stream groups into a table, and a table streams

        return Stream(self._builder, self._node, self._key, self._value)
