"""A change of a table's row: what a table hands to the next, and what a repartition topic carries.

Kafka Streams' `Change`.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

V = TypeVar("V")


class Change(NamedTuple, Generic[V]):
    """The new and the old value of a key; None is no value.

    `latest` is whether no later change of the key has been seen: it is True but where a versioned
    table takes a record that is out of order.
    """

    new: V | None
    old: V | None
    latest: bool = True

    def __str__(self) -> str:
        return f"({self.new}<-{self.old})"
