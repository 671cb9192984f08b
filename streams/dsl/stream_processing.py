"""Declare the steps of Stream that run a user's Processor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from streams.dsl.processor_stores import add_processor_step
from streams.graph.materialized import Store
from streams.graph.nodes import Node, Operator
from streams.operators.process import ProcessorFactory, process_records, process_with_fixed_keys
from streams.processor.processor import Processor
from streams.processor.processor_supplier import ProcessorSupplier
from streams.serdes import Serde

if TYPE_CHECKING:
    from streams.dsl.stream import Stream

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


class StreamProcessing(Generic[K, V]):
    """Adds `process` and `process_values` to a `Stream[K, V]`."""

    __slots__ = ()

    def process(
        self,
        processor: ProcessorSupplier[K, V, K2, V2] | Callable[[], Processor[K, V, K2, V2]],
        *,
        stores: Sequence[str | Store] = (),
        key: Serde[K2] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
        co_partitioned: bool = True,
    ) -> Stream[K2, V2]:
        """Process records by a Processor; each task has one of its own.

        `processor` is its class, a function making one, or a `ProcessorSupplier`. `stores` names
        more stores than the class does, or brings them. What it forwards has the serdes given here,
        and may have another key.

        The topics whose records reach a store, here and at other steps, must have equal partition
        counts, so that the records of a key meet in one task. `co_partitioned=False` says that
        those of this step need not.

        >>> class Swap(Processor):
        ...     def process(self, record):
        ...         self.context.forward(record.with_key(str(record.value)).with_value(record.key))
        >>> run(orders.process(Swap, key=serdes.string, value=serdes.string))
        [('5', 'ann'), ('50', 'bob'), ('7', 'ann')]
        """
        node = _add_processor(self, processor, process_records, stores, name, co_partitioned)
        return _create_stream(self, node, key, value, rekeyed=True)

    def process_values(
        self,
        processor: ProcessorSupplier[K, V, K, V2] | Callable[[], Processor[K, V, K, V2]],
        *,
        stores: Sequence[str | Store] = (),
        key: Serde[K] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
        co_partitioned: bool = True,
    ) -> Stream[K, V2]:
        """Process records by a Processor that leaves their keys as they are.

        No repartition follows, and the serdes stay unless others are given. A forward with another
        key is refused. The arguments are those of `process`.

        >>> class Stamp(Processor):
        ...     def process(self, record):
        ...         self.context.forward(record.with_value([record.value, record.timestamp_ms]))
        >>> run(orders.process_values(Stamp))
        [('ann', [5, 0]), ('bob', [50, 0]), ('ann', [7, 0])]
        """
        node = _add_processor(
            self, processor, process_with_fixed_keys, stores, name, co_partitioned
        )
        return _create_stream(self, node, key, value, rekeyed=False)


def _add_processor(
    stream: Any,
    supplier: ProcessorFactory | ProcessorSupplier,
    create_operator: Callable[[ProcessorFactory, Collection[str]], Operator],
    stores: Sequence[str | Store],
    name: str | None,
    co_partitioned: bool,
) -> Node:
    """Add a step behind `stream` that runs a user's processor, with its stores."""
    builder = stream._builder
    step = builder.graph.choose_step_name("KSTREAM-PROCESSOR", name)
    return add_processor_step(
        builder,
        "KSTREAM-PROCESSOR",
        step,
        (stream._node,),
        create_operator,
        supplier,
        stores,
        co_partitioned=co_partitioned,
    )


def _create_stream(
    stream: Any,
    node: Node,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    *,
    rekeyed: bool,
) -> Stream[Any, Any]:
    """Return the stream of what `node` forwards; unless it is `rekeyed`, unknown serdes stay."""
    if not rekeyed:
        key, value = key or stream._key, value or stream._value
    derived: Stream[Any, Any] = replace(
        stream, _node=node, _key=key, _value=value, _rekeyed=rekeyed or stream._rekeyed
    )
    return derived
