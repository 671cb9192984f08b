"""Define one bug for each family of operators, which the comparison has to see.

Each is small, as a slip would be: a bound that is one off, a side that is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from streams import windows
from streams.dsl import (
    stream,
    stream_stream_joins,
    stream_table_joins,
    suppressed,
    table,
    table_table_joins,
)
from streams.graph import materialized
from streams.operators import foreign_key, outer_join, session_aggregate, table_aggregate
from streams.operators.filter import filter_records
from streams.operators.table_values import create_map_computation
from streams.processor.record import Record
from streams.topology import expand


def slug(name: str) -> str:
    """Return the bug's name as the name of its case in the corpus, `<slug>.json`."""
    return name.replace("'", "").replace(",", "").replace(" ", "-")


Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Bug:
    """Represents a planted bug.

    `operator` is the production that is put into each case that is to show it.
    """

    operator: str
    plant: Plant


def _replaced(place: Any, name: str, make: Callable[[Any], Any]) -> Plant:
    """Return a planter that replaces what stands there by what `make` makes of it."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(place, name, make(getattr(place, name)))

    return plant


def _longer_grace(real: Any) -> Any:
    return lambda size, *more, grace=0: real(size, *more, grace=grace + 1)


def _shorter_gap(real: Any) -> Any:
    return lambda gap, grace=0: real(gap - 1, grace)


def _as_inner(real: Any) -> Any:
    return lambda *given, left, **more: real(*given, left=False, **more)


def _nothing(real: Any) -> Any:
    return lambda *_: None


def _reversed_values(real: Any) -> Any:
    return lambda mapper: real(lambda value: list(mapper(value))[::-1])


def _uncached(real: Any) -> Any:
    def store(*given: Any, caching: bool = True, **more: Any) -> Any:
        return real(*given, caching=False, **more)

    return store


def _headers_lost(real: Any) -> Any:
    return lambda record, headers: real(record, ())


def _headers_kept(real: Any) -> Any:
    return lambda message, headers: message


def _window_one_less(real: Any) -> Any:
    return lambda *given: _with(real(*given), after_ms=-1)


def _with(window: Any, *, after_ms: int) -> Any:
    return replace(window, after_ms=window.after_ms + after_ms)


BUGS: Mapping[str, Bug] = {
    "flat_map_values in another order": Bug(
        "flat_map_values", _replaced(stream, "flat_map_values", _reversed_values)
    ),
    "filter keeps what it is to drop": Bug(
        "filter_not", _replaced(stream, "filter_not_records", lambda real: filter_records)
    ),
    "a record without a key stays in a repartition topic": Bug(
        "repartition",
        _replaced(
            expand,
            "find_steps_above_joins_of_keyless_records",
            lambda real: lambda graph: frozenset(node.name for node in graph.nodes),
        ),
    ),
    "headers of a processor are lost": Bug(
        "process_values", _replaced(Record, "with_headers", _headers_lost)
    ),
    "headers of a record reach the session that it has changed": Bug(
        "session", _replaced(session_aggregate, "MessageWithHeaders", _headers_kept)
    ),
    "a window closes a millisecond late": Bug(
        "tumbling", _replaced(windows, "tumbling", _longer_grace)
    ),
    "hopping windows close a millisecond late": Bug(
        "hopping", _replaced(windows, "hopping", _longer_grace)
    ),
    "a session's gap is a millisecond short": Bug(
        "session", _replaced(windows, "session", _shorter_gap)
    ),
    "results are not held back": Bug(
        "aggregate_group", _replaced(materialized.Store, "default", _uncached)
    ),
    "the window of a join is a millisecond short": Bug(
        "join_stream", _replaced(stream_stream_joins, "create_join_window", _window_one_less)
    ),
    "an outer join forgets who waits": Bug(
        "join_stream", _replaced(outer_join.UnmatchedRecords, "emit_closed_if_due", _nothing)
    ),
    "a left join with a table is an inner one": Bug(
        "join_table", _replaced(stream_table_joins, "join_records_with_table", _as_inner)
    ),
    "a left foreign-key join is an inner one": Bug(
        "join_foreign",
        _replaced(
            foreign_key,
            "list_left_join_requests",
            lambda real: foreign_key.list_inner_join_requests,
        ),
    ),
    "the right side of a table's join is taken for the left": Bug(
        "join_tables",
        _replaced(table_table_joins, "swap_joiner_arguments", lambda real: lambda joiner: joiner),
    ),
    "nothing is subtracted": Bug(
        "aggregate_table",
        _replaced(
            table_aggregate,
            "create_aggregate_fold",
            lambda real: (
                lambda start, add, subtract, *more: real(
                    start, add, lambda key, value, total: total, *more
                )
            ),
        ),
    ),
    "a suppressed window leaves before its grace is over": Bug(
        "suppress_until_closed",
        _replaced(suppressed, "find_window_grace_ms", lambda real: lambda *_: 0),
    ),
    "a filter of a table deletes nothing": Bug(
        "filter",
        _replaced(
            table,
            "create_filter_computation",
            lambda real: lambda predicate: create_map_computation(_same),
        ),
    ),
}


def _same(value: Any) -> Any:
    return value
