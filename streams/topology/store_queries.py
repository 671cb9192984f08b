"""Define queries that run a function of the user at each task of a store, by a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """Represents a query that `App.register_query` has registered (a Query of IQv2).

    `function` is called with a view of what one task has of `store`, and with the arguments of the
    query by their names. `merge` makes one result of those of all tasks, with the same arguments.
    """

    name: str
    store: str
    function: Callable[..., Any]
    merge: Callable[..., Any]


def list_results(results: Sequence[Any], /, **arguments: object) -> list[Any]:
    """Return the results of all tasks as a list: what a query without `merge` results in."""
    return list(results)
