"""Foreign-key joins: what is described of them, two internal topics among it (KIP-213)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams import serdes
from streams.dsl.builder import known
from streams.dsl.functions import KEY_VALUE, callable_for
from streams.dsl.materialized import Store
from streams.dsl.routing import same_application
from streams.dsl.table import Table, table_of
from streams.errors import TopologyError
from streams.operators.foreign_key import Serdes, look_up, register, resolve, subscribe, tell
from streams.serdes import Serde
from streams.serdes.subscriptions import Answer, answer, subscription
from streams.topology.joined_view import JoinKind
from streams.topology.nodes import Node, Operator, ProcessorNode, SinkNode, SourceNode, StoreSpec

_KIND = "KTABLE-FK-JOIN"


def join_by_foreign_key(
    kind: JoinKind,
    left_table: Table[Any, Any],
    right_table: Table[Any, Any],
    joiner: Callable[[Any, Any], Any],
    foreign_key: Callable[[Any, Any], Any],
    *,
    value: Serde[Any] | None,
    store: str | Store | None,
    name: str | None,
) -> Table[Any, Any]:
    """The rows of `left_table`, each with the value that `right_table` has of its foreign key.

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
    join = _Join(left_table, right_table, step, name)
    answers = join.ask(foreign_key, left=left)
    resolver = join.step(
        "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR",
        "subscription-response-resolver",
        answers,
        resolve(left_table._view, joiner, join.serdes, left=left),
        stores=left_table._view.read_from(),
    )
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
        key, row = known(left._key, "key", step), known(left._value, "value", step)
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

    def ask(self, foreign_key: Callable[[Any, Any], Any], *, left: bool) -> Node:
        """All that comes before the answers are back: they are read by the step returned."""
        asks = subscription(self.serdes.key)
        sender = self.step(
            "SUBSCRIPTION-REGISTRATION",
            "subscription-registration-processor",
            self._left._node,
            subscribe(self._left._view, foreign_key, self.serdes, left=left),
        )
        topic = f"{self._asking}-topic"
        asked = self._through(topic, "registration", (sender,), self._other_key, asks)
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
        topic = f"{self._base('SUBSCRIPTION-RESPONSE', 'subscription-response')}-topic"
        key = known(self._left._key, "key", topic)
        answered = self._through(
            topic, "response", (finder, teller), key, answer(self._other_value), _row_partition
        )
        self.builder.graph.copartitioned.append((self._left._node, answered))
        return answered

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

    def _through(
        self,
        topic: str,
        what: str,
        parents: tuple[Node, ...],
        key: Serde[Any],
        value: Serde[Any],
        partitioner: Callable[[Any, Any, int], int | None] | None = None,
    ) -> SourceNode:
        """The records of `parents` through an internal topic."""
        graph, base = self.builder.graph, f"{self._name}-subscription-{what}"
        whole = f"{self.builder.application_id}-{topic}"
        sink = SinkNode(
            name=graph.name("KTABLE-SINK", None if self._name is None else f"{base}-sink"),
            parents=parents,
            topic=whole,
            key=key,
            value=value,
            internal=True,
            partitioner=partitioner,
        )
        graph.add(sink)
        source = SourceNode(
            name=graph.name("KTABLE-SOURCE", None if self._name is None else f"{base}-source"),
            topic=whole,
            key=key,
            value=value,
            internal=True,
        )
        graph.add(source)
        return source


def _row_partition(key: Any, value: Answer, count: int) -> int | None:
    """Where the row is that asked; None, by its key, where a subscription of old didn't say."""
    return value.partition
