"""Define Stream, an unbounded sequence of records, and the steps that turn it into others.

Functions take `(key, value)` where the key may change or matters, the value alone in `*_values`. A
step that keeps the key keeps its serde, `map` and `flat_map` keep neither serde, and `key=`,
`value=` on any step override.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from streams.common.names import check_step_name
from streams.dsl.builder import InternalStreamsBuilder
from streams.dsl.function_checks import KEY_VALUE_ARGUMENTS, VALUE_ARGUMENTS, check_callable
from streams.dsl.grouped import Grouped
from streams.dsl.kafka_streams_names import DslBase
from streams.dsl.routing import StreamRouting
from streams.dsl.stream_joins import StreamJoins
from streams.dsl.stream_processing import StreamProcessing
from streams.dsl.table import Table, create_table
from streams.graph.materialized import Store
from streams.graph.nodes import Node, Operator
from streams.graph.step_traits import StepTraits
from streams.operators.filter import filter_not_records, filter_records
from streams.operators.flat_map import flat_map_pairs, flat_map_values
from streams.operators.map import map_keys, map_pairs, map_values
from streams.operators.peek import peek_records
from streams.serdes import Serde

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")

_FILTER = StepTraits(is_stateless=True, forwards_unchanged=True, keeps_keys=True)
_FLAT_MAP = StepTraits(is_stateless=True)
_MAP = StepTraits(is_stateless=True, drops_records=False)
_FLAT_MAP_VALUES = StepTraits(is_stateless=True, keeps_keys=True)
_MAP_VALUES = StepTraits(is_stateless=True, drops_records=False, keeps_latest=True, keeps_keys=True)
_PEEK = StepTraits(
    is_stateless=True,
    drops_records=False,
    keeps_latest=True,
    forwards_unchanged=True,
    has_side_effects=True,
    keeps_keys=True,
)


@dataclass(frozen=True, slots=True, repr=False)
class Stream(DslBase, StreamJoins[K, V], StreamProcessing[K, V], StreamRouting[K, V]):
    """Represents a step's output records (Kafka Streams' KStream).

    Its methods are KStream's, in Python's spelling: `flat_map` is `flatMap`, `for_each` `foreach`.
    All raise TopologyError, naming the step, for a function that can't be called with the step's
    arguments, a name that is illegal or a serde that is none. A name that is taken twice is found
    when the topology is built (`App.topology`).

    `rekeyed` says that keys may not match partitions any more.

    The examples of its methods go on from this one:

    >>> app = App("shop")
    >>> orders = app.stream("orders", key=serdes.string, value=serdes.int64)
    >>> def run(result):
    ...     result.to("result", key=serdes.json, value=serdes.json)
    ...     with TopologyTestDriver(app) as driver:
    ...         driver.topic("orders").pipe_many([("ann", 5), ("bob", 50), ("ann", 7)])
    ...         return driver.topic("result").read_pairs()
    """

    _builder: InternalStreamsBuilder
    _node: Node
    _key: Serde[Any] | None
    _value: Serde[Any] | None
    _rekeyed: bool = False

    def filter(
        self,
        predicate: Callable[[K, V], object],
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> Stream[K, V]:
        """Keep the records for which `predicate(key, value)` is true.

        >>> run(orders.filter(lambda name, total: total > 10))
        [('bob', 50)]
        """
        return self._add_step_keeping_serdes(
            "KSTREAM-FILTER", predicate, filter_records(predicate), name, _FILTER, key, value
        )

    def filter_not(
        self,
        predicate: Callable[[K, V], object],
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> Stream[K, V]:
        """Drop the records for which `predicate(key, value)` is true.

        >>> run(orders.filter_not(lambda name, total: total > 10))
        [('ann', 5), ('ann', 7)]
        """
        return self._add_step_keeping_serdes(
            "KSTREAM-FILTER", predicate, filter_not_records(predicate), name, _FILTER, key, value
        )

    def peek(
        self,
        action: Callable[[K, V], object],
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> Stream[K, V]:
        """Call `action(key, value)` for each record and pass the record on.

        >>> run(orders.peek(lambda name, total: print(name, total)))
        ann 5
        bob 50
        ann 7
        [('ann', 5), ('bob', 50), ('ann', 7)]
        """
        return self._add_step_keeping_serdes(
            "KSTREAM-PEEK",
            action,
            peek_records(action),
            name,
            _PEEK,
            key,
            value,
            needs_result=False,
        )

    def for_each(self, action: Callable[[K, V], object], *, name: str | None = None) -> None:
        """Call `action(key, value)` for each record, and end this branch.

        >>> orders.for_each(lambda name, total: print(name, total))
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("orders").pipe("ann", 5)
        ann 5
        """
        self._add_step_keeping_serdes(
            "KSTREAM-FOREACH", action, peek_records(action), name, _PEEK, needs_result=False
        )

    def map(
        self,
        mapper: Callable[[K, V], tuple[K2, V2]],
        *,
        key: Serde[K2] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> Stream[K2, V2]:
        """Replace each record by one with the key and value that `mapper(key, value)` returns.

        >>> run(orders.map(lambda name, total: (total, name)))
        [(5, 'ann'), (50, 'bob'), (7, 'ann')]
        """
        node = self._add_step("KSTREAM-MAP", mapper, map_pairs(mapper), name, _MAP)
        return Stream(self._builder, node, key, value, True)

    def flat_map(
        self,
        mapper: Callable[[K, V], Iterable[tuple[K2, V2]]],
        *,
        key: Serde[K2] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> Stream[K2, V2]:
        """Replace each record by any number of them: `mapper(key, value)` returns pairs.

        >>> run(orders.flat_map(lambda name, total: [(name, 1), ("all", 1)]))
        [('ann', 1), ('all', 1), ('bob', 1), ('all', 1), ('ann', 1), ('all', 1)]
        """
        node = self._add_step(
            "KSTREAM-FLATMAP", mapper, flat_map_pairs(mapper), name, _FLAT_MAP, may_yield=True
        )
        return Stream(self._builder, node, key, value, True)

    def map_values(
        self,
        mapper: Callable[[V], V2],
        *,
        key: Serde[K] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> Stream[K, V2]:
        """Replace each record's value by `mapper(value)`.

        The value's serde stays unless `value` is given.

        >>> run(orders.map_values(lambda total: total * 2, value=serdes.int64))
        [('ann', 10), ('bob', 100), ('ann', 14)]
        """
        node = self._add_step(
            "KSTREAM-MAPVALUES", mapper, map_values(mapper), name, _MAP_VALUES, VALUE_ARGUMENTS
        )
        return Stream(self._builder, node, key or self._key, value or self._value, self._rekeyed)

    def flat_map_values(
        self,
        mapper: Callable[[V], Iterable[V2]],
        *,
        key: Serde[K] | None = None,
        value: Serde[V2] | None = None,
        name: str | None = None,
    ) -> Stream[K, V2]:
        """Replace each record by one for each value that `mapper(value)` returns, with its key.

        The value's serde stays unless `value` is given.

        >>> run(orders.flat_map_values(lambda total: [total, -total]))
        [('ann', 5), ('ann', -5), ('bob', 50), ('bob', -50), ('ann', 7), ('ann', -7)]
        """
        node = self._add_step(
            "KSTREAM-FLATMAPVALUES",
            mapper,
            flat_map_values(mapper),
            name,
            _FLAT_MAP_VALUES,
            VALUE_ARGUMENTS,
            may_yield=True,
        )
        return Stream(self._builder, node, key or self._key, value or self._value, self._rekeyed)

    def select_key(
        self,
        selector: Callable[[K, V], K2],
        *,
        key: Serde[K2] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> Stream[K2, V]:
        """Replace each record's key by `selector(key, value)`.

        >>> run(orders.select_key(lambda name, total: name[0], key=serdes.string))
        [('a', 5), ('b', 50), ('a', 7)]
        """
        node = self._add_step("KSTREAM-KEY-SELECT", selector, map_keys(selector), name, _MAP)
        return Stream(self._builder, node, key, value or self._value, True)

    def to_table(
        self,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """Return a table of the latest value of each key.

        A record without a value deletes its key; one without a key is dropped.

        >>> run(orders.to_table(store="latest").map_values(lambda total: -total).to_stream())
        [('ann', -5), ('bob', -50), ('ann', -7)]
        """
        builder = self._builder
        key_serde, value_serde = key or self._key, value or self._value
        parent = self._node
        step = builder.graph.choose_step_name("KSTREAM-TOTABLE", name)
        if self._rekeyed:
            parent = builder.add_repartition(parent, step, step, key_serde, value_serde)
        traits = StepTraits(takes_latest=True)
        return create_table(
            builder, "KSTREAM-TOTABLE", parent, key_serde, value_serde, store, step, traits
        )

    def group_by(
        self,
        selector: Callable[[K, V], K2],
        *,
        key: Serde[K2] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> Grouped[K2, V]:
        """Group records by the key that `selector(key, value)` returns.

        All records of a key then come to one task, through a repartition topic. `name` names that
        topic, one for all aggregations of the group; else each aggregation's store does.

        >>> by_letter = orders.group_by(lambda name, total: name[0], key=serdes.string)
        >>> run(by_letter.count(store="orders-by-letter").to_stream())
        [('a', 1), ('b', 1), ('a', 2)]
        """
        node = self._add_step("KSTREAM-KEY-SELECT", selector, map_keys(selector), name, _MAP)
        return Grouped(self._builder, node, key, value or self._value, True, name)

    def group_by_key(
        self,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
    ) -> Grouped[K, V]:
        """Group records by the key that they have.

        `name` names the repartition topic, as in `group_by`, if the keys were changed before.

        >>> run(orders.group_by_key().count(store="orders-by-name").to_stream())
        [('ann', 1), ('bob', 1), ('ann', 2)]
        """
        key, value = key or self._key, value or self._value
        if name is not None:
            check_step_name(name, "a group")
        return Grouped(self._builder, self._node, key, value, self._rekeyed, name)

    def print(
        self,
        label: str | None = None,
        *,
        to: Callable[[str], object] | None = None,
        name: str | None = None,
    ) -> None:
        """Write each record as a line `[label]: key, value` to standard output or to `to(line)`.

        >>> orders.print("orders")
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("orders").pipe("ann", 5)
        [orders]: ann, 5
        """
        prefix = "" if label is None else f"[{label}]: "
        write = builtins.print if to is None else to
        self._add_step_keeping_serdes(
            "KSTREAM-PRINTER",
            write,
            peek_records(lambda key, value: write(f"{prefix}{key}, {value}")),
            name,
            _PEEK,
            argument_names=("line",),
            needs_result=False,
        )

    def _add_step_keeping_serdes(
        self,
        kind: str,
        function: object,
        operator: Operator,
        name: str | None,
        traits: StepTraits,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        *,
        argument_names: Sequence[str] = KEY_VALUE_ARGUMENTS,
        needs_result: bool = True,
    ) -> Stream[K, V]:
        """Add a step that keeps key and value, and so both serdes, and return its stream."""
        node = self._add_step(
            kind,
            function,
            operator,
            name,
            traits,
            argument_names,
            needs_result=needs_result,
        )
        return Stream(self._builder, node, key or self._key, value or self._value, self._rekeyed)

    def _add_step(
        self,
        kind: str,
        function: object,
        operator: Operator,
        name: str | None,
        traits: StepTraits,
        argument_names: Sequence[str] = KEY_VALUE_ARGUMENTS,
        *,
        needs_result: bool = True,
        may_yield: bool = False,
    ) -> Node:
        """Check the user's function and add a step that applies it."""
        step = self._builder.graph.choose_step_name(kind, name)
        check_callable(
            step, function, argument_names, needs_result=needs_result, may_yield=may_yield
        )
        return self._builder.add_step(kind, self._node, operator, name=name, traits=traits)
