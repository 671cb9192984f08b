"""What a stream can be joined with: the methods of Stream, with their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from streams.dsl.joins import JoinKind, StreamJoin, join_streams
from streams.dsl.materialized import Store
from streams.durations import Duration
from streams.serdes import Serde

if TYPE_CHECKING:
    from streams.dsl.stream import Stream

K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")
R = TypeVar("R")


EMIT_INTERVAL = 1_000
"""Kafka Streams' __emit.interval.ms.kstreams.outer.join.spurious.results.fix__."""


class StreamJoins(Generic[K, V]):
    """The joins of a `Stream[K, V]`."""

    __slots__ = ()

    @overload
    def join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[V, V2], R],
        *,
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        other_value: Serde[V2] | None = None,
        store: str | Store | None = None,
        other_store: str | Store | None = None,
        with_key: Literal[False] = False,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[K, V, V2], R],
        *,
        with_key: Literal[True],
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        other_value: Serde[V2] | None = None,
        store: str | Store | None = None,
        other_store: str | Store | None = None,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    def join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        *,
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        other_value: Serde[Any] | None = None,
        store: str | Store | None = None,
        other_store: str | Store | None = None,
        with_key: bool = False,
        name: str | None = None,
    ) -> Stream[Any, Any]:
        """Each record with those of the other stream that have its key and a time near its own.

        A record of the other stream may be `before` older, and `after` newer; `within` says both.
        `grace` is how much longer records that come late find each other. The joined record has the
        later of the two times. `joiner` is handed `(value, other_value)`; `with_key=True`:
        `(key, value, other_value)`. Records without a key or a value are dropped.
        """
        asked = StreamJoin(
            kind=JoinKind.INNER, within=within, before=before, after=after, grace=grace, key=key,
            value=value, other_value=other_value, store=store, other_store=other_store,
            with_key=with_key, name=name,
        )  # fmt: skip
        return join_streams(self, other, joiner, asked)  # type: ignore[arg-type]

    @overload
    def left_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[V, V2 | None], R],
        *,
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
        emit_interval: Duration = EMIT_INTERVAL,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        other_value: Serde[V2] | None = None,
        store: str | Store | None = None,
        other_store: str | Store | None = None,
        with_key: Literal[False] = False,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[K, V, V2 | None], R],
        *,
        with_key: Literal[True],
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
        emit_interval: Duration = EMIT_INTERVAL,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        other_value: Serde[V2] | None = None,
        store: str | Store | None = None,
        other_store: str | Store | None = None,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    def left_join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        *,
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
        emit_interval: Duration = EMIT_INTERVAL,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        other_value: Serde[Any] | None = None,
        store: str | Store | None = None,
        other_store: str | Store | None = None,
        with_key: bool = False,
        name: str | None = None,
    ) -> Stream[Any, Any]:
        """`join`, and each record of this stream that meets none of the other joined with None.

        It is so joined when none can come any more: when its window and the `grace` have closed,
        which is looked for as records come, at most once in `emit_interval` of the wall clock; it
        has its own time. A record without a key is joined with None at once.
        """
        asked = StreamJoin(
            kind=JoinKind.LEFT, within=within, before=before, after=after, grace=grace, key=key,
            value=value, other_value=other_value, store=store, other_store=other_store,
            with_key=with_key, name=name, emit_interval=emit_interval,
        )  # fmt: skip
        return join_streams(self, other, joiner, asked)  # type: ignore[arg-type]

    @overload
    def outer_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[V | None, V2 | None], R],
        *,
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
        emit_interval: Duration = EMIT_INTERVAL,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        other_value: Serde[V2] | None = None,
        store: str | Store | None = None,
        other_store: str | Store | None = None,
        with_key: Literal[False] = False,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[K, V | None, V2 | None], R],
        *,
        with_key: Literal[True],
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
        emit_interval: Duration = EMIT_INTERVAL,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        other_value: Serde[V2] | None = None,
        store: str | Store | None = None,
        other_store: str | Store | None = None,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    def outer_join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        *,
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
        emit_interval: Duration = EMIT_INTERVAL,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        other_value: Serde[Any] | None = None,
        store: str | Store | None = None,
        other_store: str | Store | None = None,
        with_key: bool = False,
        name: str | None = None,
    ) -> Stream[Any, Any]:
        """`left_join`, and the same for the records of the other stream."""
        asked = StreamJoin(
            kind=JoinKind.OUTER, within=within, before=before, after=after, grace=grace, key=key,
            value=value, other_value=other_value, store=store, other_store=other_store,
            with_key=with_key, name=name, emit_interval=emit_interval,
        )  # fmt: skip
        return join_streams(self, other, joiner, asked)  # type: ignore[arg-type]
