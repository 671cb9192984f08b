"""Declare the joins of Stream, with a type for each kind of other side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from streams.common.call_hints import find_argument_hint
from streams.common.durations import Duration
from streams.dsl.global_table import GlobalTable
from streams.dsl.stream_stream_joins import StreamJoinOptions, join_streams
from streams.dsl.stream_table_joins import (
    GlobalTableJoinOptions,
    TableJoinOptions,
    join_with_global_table,
    join_with_table,
)
from streams.dsl.table import Table
from streams.errors import TopologyError
from streams.graph.joined_view import JoinKind
from streams.graph.materialized import Store
from streams.operators.lateness import LateRecord
from streams.serdes import Serde

if TYPE_CHECKING:
    from streams.dsl.stream import Stream

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
R = TypeVar("R")


class InnerJoinKeywords(TypedDict, Generic[K, V, V2, R], total=False):
    """Names the keywords of an inner join of two streams. Kafka Streams' JoinWindows, StreamJoined.

    The default of `grace` is 0, that of the others None.
    """

    within: Duration | None
    before: Duration | None
    after: Duration | None
    grace: Duration
    key: Serde[K] | None
    this_value: Serde[V] | None
    value: Serde[R] | None
    other_value: Serde[V2] | None
    store: str | Store | None
    other_store: str | Store | None
    on_late: Callable[[LateRecord[K, V | V2]], object] | None


class OuterJoinKeywords(InnerJoinKeywords[K, V, V2, R], total=False):
    """Names the keywords of a left or outer join of two streams.

    The default of `emit_interval` is a second.
    """

    emit_interval: Duration


class TableJoinKeywords(TypedDict, Generic[K, V, R], total=False):
    """Names the keywords of the join of a stream with a table; their default is None."""

    key: Serde[K] | None
    this_value: Serde[V] | None
    value: Serde[R] | None
    grace: Duration | None


class StreamJoins(Generic[K, V]):
    """Adds `join`, `left_join` and `outer_join` to a `Stream[K, V]`."""

    __slots__ = ()

    @overload
    def join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[V, V2], R],
        *,
        with_key: Literal[False] = False,
        name: str | None = None,
        **options: Unpack[InnerJoinKeywords[K, V, V2, R]],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[K, V, V2], R],
        *,
        with_key: Literal[True],
        name: str | None = None,
        **options: Unpack[InnerJoinKeywords[K, V, V2, R]],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V, V2], R],
        *,
        with_key: Literal[False] = False,
        name: str | None = None,
        **options: Unpack[TableJoinKeywords[K, V, R]],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Table[K, V2],
        joiner: Callable[[K, V, V2], R],
        *,
        with_key: Literal[True],
        name: str | None = None,
        **options: Unpack[TableJoinKeywords[K, V, R]],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: GlobalTable[K2, V2],
        joiner: Callable[[V, V2], R],
        *,
        key: Callable[[K, V], K2 | None],
        value: Serde[R] | None = None,
        with_key: Literal[False] = False,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: GlobalTable[K2, V2],
        joiner: Callable[[K, V, V2], R],
        *,
        with_key: Literal[True],
        key: Callable[[K, V], K2 | None],
        value: Serde[R] | None = None,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    def join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        *,
        with_key: bool = False,
        name: str | None = None,
        **options: Any,
    ) -> Stream[Any, Any]:
        """Join each record with the records or the row of the same key in `other`.

        `joiner` is handed `(value, other_value)`; with `with_key=True` it is handed
        `(key, value, other_value)`. Records without a key or a value are dropped.

        With a stream: a record joins each record of the other one that is at most `before` older
        or `after` newer; `within` sets both. `grace` is how much longer records that come late
        find each other. The joined record has the later of the two times.

        With a table: its row as it is when the record comes; of a versioned table, as it was at the
        record's time, for which the record may wait `grace` long. With a global table the row's
        key is `key(key, value)`. The joined record has the record's own time.

        `value` is the serde of the result, `this_value` and `other_value` are those of what is kept
        and repartitioned, where they are not known. `store` and `other_store` name the stores of
        the two streams, or bring them.

        >>> cities = app.table("cities", key=serdes.string, value=serdes.string)
        >>> sent = orders.join(cities, lambda total, city: f"{total} to {city}", value=serdes.json)
        >>> sent.to("sent")
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("cities").pipe("ann", "Faro")
        ...     driver.topic("orders").pipe_many([("ann", 5), ("bob", 50)])
        ...     driver.topic("sent").read_pairs()
        [('ann', '5 to Faro')]
        """
        return _join_stream(self, other, joiner, JoinKind.INNER, with_key, name, options)

    @overload
    def left_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[V, V2 | None], R],
        *,
        with_key: Literal[False] = False,
        name: str | None = None,
        **options: Unpack[OuterJoinKeywords[K, V, V2, R]],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[K, V, V2 | None], R],
        *,
        with_key: Literal[True],
        name: str | None = None,
        **options: Unpack[OuterJoinKeywords[K, V, V2, R]],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V, V2 | None], R],
        *,
        with_key: Literal[False] = False,
        name: str | None = None,
        **options: Unpack[TableJoinKeywords[K, V, R]],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Table[K, V2],
        joiner: Callable[[K, V, V2 | None], R],
        *,
        with_key: Literal[True],
        name: str | None = None,
        **options: Unpack[TableJoinKeywords[K, V, R]],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: GlobalTable[K2, V2],
        joiner: Callable[[V, V2 | None], R],
        *,
        key: Callable[[K, V], K2 | None],
        value: Serde[R] | None = None,
        with_key: Literal[False] = False,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: GlobalTable[K2, V2],
        joiner: Callable[[K, V, V2 | None], R],
        *,
        with_key: Literal[True],
        key: Callable[[K, V], K2 | None],
        value: Serde[R] | None = None,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    def left_join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        *,
        with_key: bool = False,
        name: str | None = None,
        **options: Any,
    ) -> Stream[Any, Any]:
        """Join each record with its matches in `other`, or with None if it has none.

        In a join of two streams a record is joined with None when no match can come any more: when
        its window and the `grace` have closed. That is checked as records come, at most once in
        `emit_interval`; the result has the record's own time. A record without a
        key is joined with None at once.

        >>> cities = app.table("cities", key=serdes.string, value=serdes.string)
        >>> run(orders.left_join(cities, lambda total, city: [total, city]))
        [('ann', [5, None]), ('bob', [50, None]), ('ann', [7, None])]
        """
        return _join_stream(self, other, joiner, JoinKind.LEFT, with_key, name, options)

    @overload
    def outer_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[V | None, V2 | None], R],
        *,
        with_key: Literal[False] = False,
        name: str | None = None,
        **options: Unpack[OuterJoinKeywords[K, V, V2, R]],
    ) -> Stream[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Stream[K, V2],
        joiner: Callable[[K, V | None, V2 | None], R],
        *,
        with_key: Literal[True],
        name: str | None = None,
        **options: Unpack[OuterJoinKeywords[K, V, V2, R]],
    ) -> Stream[K, R]: ...
    def outer_join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        *,
        with_key: bool = False,
        name: str | None = None,
        **options: Any,
    ) -> Stream[Any, Any]:
        """Join two streams, and each record of either stream without a match with None.

        >>> paid = app.stream("paid", key=serdes.string, value=serdes.int64)
        >>> both = orders.outer_join(paid, lambda total, sum: [total, sum], within=3_600_000)
        >>> both.to("both", value=serdes.json)
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("orders").pipe("ann", 5, timestamp_ms=0)
        ...     driver.topic("paid").pipe("ann", 4, timestamp_ms=1_000)
        ...     driver.topic("paid").pipe("bob", 9, timestamp_ms=2_000)
        ...     driver.topic("paid").pipe("cat", 1, timestamp_ms=9_000_000)
        ...     driver.topic("both").read_pairs()
        [('ann', [5, 4]), ('bob', [None, 9])]
        """
        return _join_stream(self, other, joiner, JoinKind.OUTER, with_key, name, options)


def _join_stream(
    stream: Any,
    other: object,
    joiner: Callable[..., Any],
    kind: JoinKind,
    with_key: bool,
    name: str | None,
    options_given: dict[str, Any],
) -> Stream[Any, Any]:
    """Return the join of `stream` with another stream, a table or a global table.

    Raises TopologyError for anything else, and for options that such a join does not take.
    """
    if isinstance(other, StreamJoins):
        _refuse_other_options(_STREAM_JOIN_KEYWORDS[kind], options_given, "a stream", kind, name)
        options = StreamJoinOptions(kind=kind, with_key=with_key, name=name, **options_given)
        return join_streams(stream, other, joiner, options)  # type: ignore[arg-type]
    if kind is JoinKind.OUTER:
        raise TopologyError(
            f"{_describe_join(kind, name)}: the outer join of a stream is with another stream, "
            "not with "
            f"{other!r:.100}: a table's updates make no results. Use left_join"
        )
    is_left = kind is JoinKind.LEFT
    if isinstance(other, Table):
        _refuse_other_options(_TABLE_JOIN_KEYWORDS, options_given, "a table", kind, name)
        with_table = TableJoinOptions(
            is_left=is_left, with_key=with_key, name=name, **options_given
        )
        return join_with_table(stream, other, joiner, with_table)
    if isinstance(other, GlobalTable):
        _refuse_other_options(_GLOBAL_JOIN_KEYWORDS, options_given, "a global table", kind, name)
        with_global_table = GlobalTableJoinOptions(
            is_left=is_left, with_key=with_key, name=name, **options_given
        )
        return join_with_global_table(stream, other, joiner, with_global_table)
    raise TopologyError(
        f"{_describe_join(kind, name)} joins a stream with a stream, a table or a global table, "
        "not with "
        f"{other!r:.100}"
    )


_STREAM_JOIN_KEYWORDS = {
    JoinKind.INNER: frozenset(InnerJoinKeywords.__annotations__),
    JoinKind.LEFT: frozenset(OuterJoinKeywords.__annotations__),
    JoinKind.OUTER: frozenset(OuterJoinKeywords.__annotations__),
}
_TABLE_JOIN_KEYWORDS = frozenset(TableJoinKeywords.__annotations__)
_GLOBAL_JOIN_KEYWORDS = frozenset({"key", "value"})


def _refuse_other_options(
    allowed_options: frozenset[str],
    options: dict[str, Any],
    other_kind: str,
    kind: JoinKind,
    name: str | None,
) -> None:
    """Raise TopologyError if the user gave options that this kind of join does not take."""
    if unknown := sorted(options.keys() - allowed_options):
        allowed = sorted(allowed_options)
        hints = (find_argument_hint("join", each, allowed) for each in unknown)
        told = "; ".join(filter(None, hints))
        raise TopologyError(
            f"{_describe_join(kind, name)} is with {other_kind}, and takes no "
            f"{', '.join(unknown)}{f' ({told})' if told else ''}: it takes "
            f"{', '.join(sorted(allowed_options))}, with_key and name"
        )


def _describe_join(kind: JoinKind, name: str | None) -> str:
    """Return a join's name for messages: that of its step if it has one, else its kind."""
    return f"the {kind.name.lower()} join" if name is None else f"step {name!r}"
