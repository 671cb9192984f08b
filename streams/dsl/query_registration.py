"""Let an application register queries of its stores, which run a function where the data is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from streams.common.function_signatures import describe_function
from streams.common.names import check_step_name
from streams.dsl.function_checks import check_callable
from streams.errors import TopologyError
from streams.graph.nodes import StoreKind
from streams.topology.build import Topology
from streams.topology.store_queries import StoreQuery, list_results

F = TypeVar("F", bound=Callable[..., Any])


class QueryRegistration:
    """Holds the queries that are registered by name; `App` is one."""

    def __init__(self) -> None:
        self._queries: dict[str, StoreQuery] = {}

    def register_query(
        self, name: str, store: str, *, merge: Callable[..., Any] | None = None
    ) -> Callable[[F], F]:
        """Return a decorator that registers a function as a query of `store`, by `name`.

        Each worker calls the function with a view of what one of its tasks has of the store
        (`ReadOnlyKeyValueStore` and the like), and the query's arguments by their names. A look-up
        by the view, and a range of a key-value store, is of one commit. `merge(results,
        **arguments)` makes one result of those of all tasks, in the order of partitions; without it
        the result is their list. Arguments and results are what JSON has. `RoutedStore.run_query`
        and GET /queries/NAME run it.

        >>> @app.register_query("largest", "prices", merge=lambda found: max(found, default=None))
        ... def find_largest(prices):
        ...     return max((price for _, price in prices.all()), default=None)
        """
        check_step_name(name)
        if name in self._queries:
            raise TopologyError(f"the query {name!r} is registered twice: give it another name")
        if merge is not None:
            check_callable(f"merge of query {name}", merge)
            _check_takes_positional_argument(
                f"merge of query {name}", merge, "the results of all tasks"
            )

        def register_function(function: F) -> F:
            check_callable(f"query {name}", function)
            _check_takes_positional_argument(f"query {name}", function, "a view of the store")
            self._queries[name] = StoreQuery(name, store, function, merge or list_results)
            return function

        return register_function

    def _add_queries(self, topology: Topology) -> Topology:
        """Return a topology with the queries. Raises TopologyError for one of no store."""
        stores = {
            spec.name
            for sub in topology.subtopologies
            for spec in sub.stores
            if spec.kind is not StoreKind.BUFFER
        }
        for query in self._queries.values():
            if query.store not in stores:
                raise TopologyError(
                    f"query {query.name!r} is of the store {query.store!r}; there are "
                    f"{sorted(stores)}"
                )
        return replace(topology, queries=tuple(self._queries.values()))


def _check_takes_positional_argument(step: str, function: Callable[..., Any], given: str) -> None:
    """Raise TopologyError for a function that takes nothing by its place."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind_partial(given)
    except TypeError:
        raise TopologyError(
            f"step {step!r}: {describe_function(function)} takes {signature}, and is called with "
            f"{given}: give it a first parameter for that"
        ) from None
