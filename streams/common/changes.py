"""Define the change of a table's row: what one table step hands to the next.

Repartition topics of grouped tables carry it too. Kafka Streams' `Change`.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

V = TypeVar("V")


class Change(NamedTuple, Generic[V]):
    """Represents the new and the old value of a key; None is no value.

    `latest` is whether no later change of the key has been seen: it is True but where a versioned
    table takes a record that is out of order.
    """

    new: V | None
    old: V | None
    latest: bool = True

    def __str__(self) -> str:
        """Return the change as Kafka Streams prints it."""
        return f"({self.new}<-{self.old})"
