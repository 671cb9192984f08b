"""The nodes of a topology: what a step is, before anything runs.

A node knows its name, the nodes before it, and how to bind itself into a task: given the task's
context and what comes after it, it returns the function that a record goes through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from streams.serdes import Serde

Emit = Callable[[Any, Any, int], None]
"""What a record goes through: key, value, timestamp in ms."""


class Context(Protocol):
    """What a bound step may use of the task that it runs in."""

    @property
    def produce(self) -> Callable[..., None]:
        """confluent-kafka's `produce` of the task's producer. By position, which is faster: topic,
        value, key, partition, callback, on_delivery (the same), timestamp, headers."""
        ...

    def make_room(self) -> None:
        """Wait until the producer's full queue takes records again."""
        ...

    message: Any
    """The record being processed as it came from the consumer; None between records."""
    flushers: list[Callable[[], None]]
    """What to call before a commit, downstream first: steps that hold results back."""

    def store(self, name: str) -> Any: ...

    def origin(self) -> str:
        """Topic, partition and offset of the record being processed, for messages."""
        ...


Operator = Callable[[Context, Emit], Emit]
"""Binds a step into a task: the context, what comes after it -> what a record goes through."""


class StoreKind(StrEnum):
    """What a store can be asked."""

    KEY_VALUE = "key-value"
    WINDOW = "window"
    SESSION = "session"
    VERSIONED = "versioned"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """A store as the topology declares it: name, kind, serdes and how it is kept. Times in ms."""

    name: str
    key: Serde[Any]
    value: Serde[Any]
    kind: StoreKind = StoreKind.KEY_VALUE
    persistent: bool = True
    caching: bool = True
    logged: bool = True
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the changelog topic, over those that the kind has."""
    retention_ms: int | None = None
    """Window and session stores: how far behind stream time an entry is kept."""
    window_size_ms: int | None = None
    retain_duplicates: bool = False
    history_ms: int | None = None
    """Versioned stores: how far behind stream time can be asked for."""
    ttl_ms: int | None = None
    rocksdb: Callable[[Any], object] | None = None
    """Is handed rocksdict's Options of this store, to change them in place."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """One step. Two nodes are never equal: a step is itself."""

    name: str
    parents: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceNode(Node):
    """Reads a topic; an `internal` one is written by a sink of this topology (repartition)."""

    topic: str
    key: Serde[Any]
    value: Serde[Any]
    internal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProcessorNode(Node):
    """Transforms records by an operator, with the stores that it names."""

    operator: Operator
    stores: tuple[StoreSpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SinkNode(Node):
    """Writes a topic."""

    topic: str
    key: Serde[Any]
    value: Serde[Any]
    internal: bool = False


@dataclass(slots=True)
class Graph:
    """The steps of an application while it is being built, in the order they were added."""

    nodes: list[Node] = field(default_factory=list)

    def add(self, node: Node) -> None:
        self.nodes.append(node)

    def name(self, kind: str, given: str | None = None) -> str:
        """`given`, or one in Kafka Streams' manner: the kind and a running number."""
        return given if given is not None else f"{kind}-{len(self.nodes):010}"
