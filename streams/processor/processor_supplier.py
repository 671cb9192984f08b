"""Define the supplier of processors that Kafka Streams has, with the stores that it brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from typing_extensions import TypeVar

from streams.graph.materialized import Store
from streams.processor.processor import Processor
from streams.processor.transformer import ValueTransformer

K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)
K2 = TypeVar("K2", default=Any)
V2 = TypeVar("V2", default=Any)


class ProcessorSupplier(Protocol[K, V, K2, V2]):
    """Makes a processor for each task by `get`, and may bring the stores that it uses.

    Such an object can stand wherever a processor's class can. If it has a method `stores`, that
    returns the stores, or their names. Kafka Streams' ProcessorSupplier and ConnectedStoreProvider.
    """

    def get(self) -> Processor[K, V, K2, V2]:
        """Return a new processor."""
        ...


class ValueTransformerSupplier(Protocol[K, V, V2]):
    """Makes transformers of a table's values as a ProcessorSupplier makes processors.

    Kafka Streams' ValueTransformerWithKeySupplier.
    """

    def get(self) -> ValueTransformer[K, V, V2]:
        """Return a new transformer."""
        ...


def is_supplier(processor: object) -> bool:
    """Return whether `processor` is an object with a `get`, and no class or dictionary."""
    return not isinstance(processor, type | Mapping) and callable(getattr(processor, "get", None))


def get_supplied_stores(supplier: Any) -> Sequence[str | Store]:
    """Return the stores that a supplier brings besides those that its processors name."""
    stores = getattr(supplier, "stores", None)
    found = stores() if callable(stores) else stores
    return () if found is None else found
