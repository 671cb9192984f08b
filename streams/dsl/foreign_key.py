"""Describe foreign-key joins of tables, with their two internal topics (KIP-213)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams import serdes
from streams.dsl.builder import known
from streams.dsl.functions import KEY_VALUE, callable_for
from streams.dsl.materialized import Store
from streams.dsl.routing import same_application
from streams.dsl.table import Table, refuse_expiring_rows, table_of
from streams.errors import TopologyError
from streams.operators.foreign_key import Serdes, look_up, register, resolve, subscribe, tell
from streams.serdes import Serde
from streams.serdes.subscriptions import Answer, answer, subscription
from streams.topology.joined_view import JoinKind
from streams.topology.nodes import (
    Node,
    Operator,
    Partitioner,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StoreSpec,
)

_KIND = "KTABLE-FK-JOIN"


def join_by_foreign_key(
    kind: JoinKind,
    left_table: Table[Any, Any],
    right_table: Table[Any, Any],
    joiner: Callable[[Any, Any], Any],
    foreign_key: Callable[[Any, Any], Any],
    other_partitioner: Partitioner | None,
    *,
    value: Serde[Any] | None,
    store: str | Store | None,
    name: str | None,
) -> Table[Any, Any]:
    """Join each row of `left_table` with the row of `right_table` that its foreign key names.

    `other_partitioner` finds the partition of a key of the right table; it is handed the value
    None. Names, of steps and of topics, are those of Kafka Streams (KTableImpl.doJoinOnForeignKey).
    Raises TopologyError naming the step.
    """
    step = left_table._builder.graph.name(f"{_KIND}-OUTPUT", name)
    if not isinstance(right_table, Table):
        raise TopologyError(
            f"step {step!r} joins a table with another one, not with {right_table!r}"
        )
    if kind is JoinKind.OUTER:
        raise TopologyError(
            f"step {step!r}: outer_join takes no foreign_key: a row of the other table that no row "
            "refers to would have no key here. Take left_join"
        )
    left = kind is JoinKind.LEFT
    same_application(step, left_table, right_table)
    callable_for(step, foreign_key, KEY_VALUE)
    callable_for(step, joiner, ("value", "other_value"))
    for table in (left_table, right_table):
        refuse_expiring_rows(step, table, "joined rows")
    partitioner = None
    if other_partitioner is not None:
        callable_for(step, other_partitioner, ("key", "value", "partitions"))
        partitioner = _by_key_alone(other_partitioner)
    join = _Join(left_table, right_table, step, name)
    resolver = join.resolver(joiner, foreign_key, left=left)
    join.ask(foreign_key, resolver, partitioner, left=left)
    result = None if name is None else f"{name}-result"
    key = left_table._key
    return table_of(join.builder, f"{_KIND}-OUTPUT", resolver, key, value, store, result)


class _Join:
    """Adds the steps of one join, from the left table to the right one and back."""

    def __init__(
        self, left: Table[Any, Any], right: Table[Any, Any], step: str, name: str | None
    ) -> None:
        self.builder = left._builder
        self._left, self._right, self._name = left, right, name
        self._asking = self._base("SUBSCRIPTION-REGISTRATION", "subscription-registration")
        self._row_key = key = known(left._key, "key", step)
        row = known(left._value, "value", step)
        self._other_key = known(right._key, "key", f"{step} (the other table)")
        self._other_value = known(right._value, "value", f"{step} (the other table)")
        # Keys inside a subscription and hashed values are in no topic of their own: their serdes
        # get Kafka Streams' pseudo-topics, whose names end in -pk, -fk and -vh.
        within = f"{self.builder.application_id}-{self._asking}-topic"
        self.serdes = Serdes(
            key.for_topic(f"{within}-pk", "key"),
            row.for_topic(f"{within}-vh", "value"),
            self._other_key.for_topic(f"{within}-fk", "key"),
        )
        left._view.send_old()
        right._view.send_old()
        graph = self.builder.graph
        self._sink = graph.name("KTABLE-SINK", name and f"{name}-subscription-registration-sink")
        self._answers = answer(self._other_value)
        base = self._base("SUBSCRIPTION-RESPONSE", "subscription-response")
        self._answering = f"{self.builder.application_id}-{base}-topic"

    def resolver(
        self,
        joiner: Callable[[Any, Any], Any],
        foreign_key: Callable[[Any, Any], Any],
        *,
        left: bool,
    ) -> ProcessorNode:
        """Add the last step, which turns subscription responses into rows of the result."""
        responses = self._read(self._answering, "response", self._row_key, self._answers)
        self.builder.graph.copartitioned.append((self._left._node, responses))
        view, asking = self._left._view, None if left else self._sink
        return self.step(
            "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR",
            "subscription-response-resolver",
            responses,
            resolve(
                view,
                joiner,
                foreign_key,
                self.serdes,
                left=left,
                asking=asking,
                of_one_topic=not _sources(self._left._node).isdisjoint(_sources(self._right._node)),
            ),
            stores=view.read_from(),
        )

    def ask(
        self,
        foreign_key: Callable[[Any, Any], Any],
        resolver: ProcessorNode,
        find: Partitioner | None,
        *,
        left: bool,
    ) -> None:
        """Add the steps from subscriptions of the left table to responses of the right one."""
        subscription_serde = subscription(self.serdes.key)
        sender = self.step(
            "SUBSCRIPTION-REGISTRATION",
            "subscription-registration-processor",
            self._left._node,
            subscribe(self._left._view, foreign_key, self.serdes, left=left),
        )
        topic = f"{self.builder.application_id}-{self._asking}-topic"
        self._write(
            self._sink,
            (sender,) if left else (sender, resolver),
            topic,
            self._other_key,
            subscription_serde,
            find,
        )
        subscriptions = self._read(topic, "registration", self._other_key, subscription_serde)
        self.builder.graph.copartitioned.append((self._right._node, subscriptions))
        spec = StoreSpec(
            name=self._base("SUBSCRIPTION-STATE-STORE", "subscription-store"),
            key=serdes.bytes,
            value=subscription_serde,
            caching=False,
        )
        self.builder.graph.declare(spec, owner=self)
        receiver = self.step(
            "SUBSCRIPTION-PROCESSOR",
            "subscription-receive",
            subscriptions,
            register(spec.name, self.serdes),
            stores=[spec.name],
        )
        finder = self.step(
            "SUBSCRIPTION-PROCESSOR",
            "subscription-join-foreign",
            receiver,
            look_up(self._right._view),
            stores=self._right._view.read_from(),
        )
        responder = self.step(
            "SUBSCRIPTION-PROCESSOR",
            "foreign-join-subscription",
            self._right._node,
            tell(self._right._view, spec.name, self.serdes),
            stores=[spec.name],
        )
        sink = self._name and f"{self._name}-subscription-response-sink"
        self._write(
            self.builder.graph.name("KTABLE-SINK", sink),
            (finder, responder),
            self._answering,
            self._row_key,
            self._answers,
            _row_partition,
        )

    def step(
        self,
        kind: str,
        suffix: str,
        parent: Node,
        operator: Operator,
        stores: list[str] | None = None,
    ) -> ProcessorNode:
        """Add a processor step with the name that Kafka Streams would give it."""
        name = None if self._name is None else f"{self._name}-{suffix}"
        return self.builder.step(
            f"{_KIND}-{kind}", parent, operator, name=name, stores=stores or []
        )

    def _base(self, kind: str, suffix: str) -> str:
        """Return the name of a step: from the join's own name, or generated."""
        given = None if self._name is None else f"{self._name}-{suffix}"
        return self.builder.graph.name(f"{_KIND}-{kind}", given)

    def _write(
        self,
        name: str,
        parents: tuple[Node, ...],
        topic: str,
        key: Serde[Any],
        value: Serde[Any],
        partitioner: Partitioner | None = None,
    ) -> None:
        """Add a sink that writes an internal topic."""
        self.builder.graph.add(
            SinkNode(
                name=name,
                parents=parents,
                topic=topic,
                key=key,
                value=value,
                internal=True,
                partitioner=partitioner,
            )
        )

    def _read(self, topic: str, what: str, key: Serde[Any], value: Serde[Any]) -> SourceNode:
        """Add a source that reads an internal topic."""
        graph = self.builder.graph
        given = None if self._name is None else f"{self._name}-subscription-{what}-source"
        name = graph.name("KTABLE-SOURCE", given)
        source = SourceNode(name=name, topic=topic, key=key, value=value, internal=True)
        graph.add(source)
        return source


def _by_key_alone(partitioner: Partitioner) -> Partitioner:
    """Return a partitioner of subscriptions that hands `partitioner` the key alone.

    A subscription without a key is only answered, so any partition will do: None.
    """

    def partition_by_key(key: Any, value: Any, count: int) -> int | None:
        return None if key is None else partitioner(key, None, count)

    return partition_by_key


def _sources(node: Node) -> set[Node]:
    """Return the nodes that feed `node` without a topic between and have no parents."""
    if not node.parents:
        return {node}
    return set[Node]().union(*map(_sources, node.parents))


def _row_partition(key: Any, value: Answer, count: int) -> int | None:
    """Return the partition of the row that subscribed, to which the response must go.

    None, for a partition by key, where a subscription of an earlier version did not name it.
    """
    return value.partition
