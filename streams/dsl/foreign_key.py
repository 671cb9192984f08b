"""Foreign-key joins: what is described of them, two internal topics among it (KIP-213)."""

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
    """The rows of `left_table`, each with the value that `right_table` has of its foreign key.
    `other_partitioner` finds the partition of a key of the right table; its value is None.

    Names, of steps and of topics, are those of Kafka Streams (KTableImpl.doJoinOnForeignKey).
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
    find = None
    if other_partitioner is not None:
        callable_for(step, other_partitioner, ("key", "value", "partitions"))
        find = _by_key_alone(other_partitioner)
    join = _Join(left_table, right_table, step, name)
    resolver = join.resolver(joiner, foreign_key, left=left)
    join.ask(foreign_key, resolver, find, left=left)
    result = None if name is None else f"{name}-result"
    key = left_table._key
    return table_of(join.builder, f"{_KIND}-OUTPUT", resolver, key, value, store, result)


class _Join:
    """The steps of one join, from the left table to the right one and back."""

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
        # What is hashed and what stands inside of other bytes have topics that only serdes know.
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
        """The end of the way: answers become rows of the result."""
        answered = self._read(self._answering, "response", self._row_key, self._answers)
        self.builder.graph.copartitioned.append((self._left._node, answered))
        view, asking = self._left._view, None if left else self._sink
        return self.step(
            "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR",
            "subscription-response-resolver",
            answered,
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
        """The way to the other table and back to the topic of answers."""
        asks = subscription(self.serdes.key)
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
            asks,
            find,
        )
        asked = self._read(topic, "registration", self._other_key, asks)
        self.builder.graph.copartitioned.append((self._right._node, asked))
        spec = StoreSpec(
            name=self._base("SUBSCRIPTION-STATE-STORE", "subscription-store"),
            key=serdes.bytes,
            value=asks,
            caching=False,
        )
        self.builder.graph.declare(spec, owner=self)
        receiver = self.step(
            "SUBSCRIPTION-PROCESSOR",
            "subscription-receive",
            asked,
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
        teller = self.step(
            "SUBSCRIPTION-PROCESSOR",
            "foreign-join-subscription",
            self._right._node,
            tell(self._right._view, spec.name, self.serdes),
            stores=[spec.name],
        )
        sink = self._name and f"{self._name}-subscription-response-sink"
        self._write(
            self.builder.graph.name("KTABLE-SINK", sink),
            (finder, teller),
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
        name = None if self._name is None else f"{self._name}-{suffix}"
        return self.builder.step(
            f"{_KIND}-{kind}", parent, operator, name=name, stores=stores or []
        )

    def _base(self, kind: str, suffix: str) -> str:
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
        graph = self.builder.graph
        given = None if self._name is None else f"{self._name}-subscription-{what}-source"
        name = graph.name("KTABLE-SOURCE", given)
        source = SourceNode(name=name, topic=topic, key=key, value=value, internal=True)
        graph.add(source)
        return source


def _by_key_alone(partitioner: Partitioner) -> Partitioner:
    """A subscription lies where its key does; one without a key is only answered, anywhere."""

    def find(key: Any, value: Any, count: int) -> int | None:
        return None if key is None else partitioner(key, None, count)

    return find


def _sources(node: Node) -> set[Node]:
    """What is read for `node`, without going through a topic."""
    if not node.parents:
        return {node}
    return set[Node]().union(*map(_sources, node.parents))


def _row_partition(key: Any, value: Answer, count: int) -> int | None:
    """Where the row is that asked; None, by its key, where a subscription of old didn't say."""
    return value.partition
