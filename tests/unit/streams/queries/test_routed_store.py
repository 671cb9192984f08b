"""Test that a store refuses the methods of other kinds, and names its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import serdes
from streams.errors import ConfigError
from streams.graph.nodes import StoreKind
from streams.queries.routed_store import RoutedStore
from streams.queries.store_reads import StoreRow
from tests.unit.streams.queries.served import FakeReads, declare_store


def open_routed_store(kind: StoreKind) -> RoutedStore[Any, Any]:
    spec = declare_store("kept", serdes.string, serdes.int64, kind)
    rows = [StoreRow("a", 3, 5, 0, 10)]
    return RoutedStore(FakeReads({"kept": spec}, {"kept": rows}), "kept", 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "read", "reason"),
    [
        (StoreKind.VERSIONED, lambda s: s.fetch("a"), "use get or fetch_versions"),
        (StoreKind.VERSIONED, lambda s: s.fetch("a", 0, 10), "use get or fetch_versions"),
        (StoreKind.VERSIONED, lambda s: s.iterate_windows(), "use get or fetch_versions"),
        (StoreKind.KEY_VALUE, lambda s: s.fetch("a"), "use get, range or all"),
        (StoreKind.KEY_VALUE, lambda s: s.fetch_range("a"), "use get, range or all"),
        (StoreKind.KEY_VALUE, lambda s: s.iterate_windows(), "use get, range or all"),
        (StoreKind.WINDOW, lambda s: s.get("a"), "use fetch, fetch_range"),
        (StoreKind.SESSION, lambda s: s.get_result("a"), "use fetch, fetch_range"),
        (StoreKind.WINDOW, lambda s: s.range("a"), "use fetch, fetch_range"),
        (StoreKind.SESSION, lambda s: s.reverse_range("a"), "use fetch, fetch_range"),
        (StoreKind.WINDOW, lambda s: s.all(), "use fetch, fetch_range"),
        (StoreKind.WINDOW, lambda s: s.fetch_versions("a"), "use fetch, fetch_range"),
        (StoreKind.SESSION, lambda s: s.fetch_versions("a"), "use fetch, fetch_range"),
    ],
)
def test_a_method_of_another_kind_is_refused_with_those_of_this_one(
    kind: StoreKind, read: Callable[[RoutedStore[Any, Any]], Any], reason: str
) -> None:
    with pytest.raises(ConfigError, match=f"'kept' is a {kind} store.*{reason}"):
        read(open_routed_store(kind))


def test_a_version_of_a_time_is_refused_where_there_are_no_versions() -> None:
    with pytest.raises(ConfigError, match="'kept' is no versioned store"):
        open_routed_store(StoreKind.KEY_VALUE).get("a", as_of_ms=5)


def test_a_kind_has_its_own_methods() -> None:
    for kind in (StoreKind.WINDOW, StoreKind.SESSION):
        store = open_routed_store(kind)
        assert store.fetch("a") == store.fetch_range() == list(store.iterate_windows())
    [version] = open_routed_store(StoreKind.VERSIONED).fetch_versions("a")
    assert (version.value, version.timestamp_ms) == (3, 0)


def test_a_query_gets_an_argument_of_any_name() -> None:
    store = open_routed_store(StoreKind.KEY_VALUE)
    for name in ("query", "self"):
        with pytest.raises(ConfigError, match="there is no query 'smallest'"):
            store.run_query("smallest", **{name: 1})
        with pytest.raises(ConfigError, match="there is no query 'smallest'"):
            store.run_query_result("smallest", **{name: 1})
