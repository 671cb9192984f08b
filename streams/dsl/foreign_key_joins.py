"""Describe foreign-key joins of tables, with their two internal topics (KIP-213)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from streams import serdes
from streams.dsl.builder import require_serde
from streams.dsl.function_checks import KEY_VALUE_ARGUMENTS, check_callable
from streams.dsl.routing import check_same_application
from streams.dsl.table import Table, create_table, refuse_expiring_rows
from streams.errors import TopologyError
from streams.graph.joined_view import JoinKind
from streams.graph.materialized import Store
from streams.graph.nodes import (
    Node,
    Operator,
    Partitioner,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StoreSpec,
)
from streams.graph.step_traits import UNKNOWN_STEP, StepTraits
from streams.operators.foreign_key import (
    ForeignKeySerdes,
    join_responses,
    join_subscriptions,
    respond_to_subscribers,
    send_subscriptions,
    store_subscriptions,
)
from streams.serdes import Serde
from streams.serdes.foreign_key_messages import (
    SubscriptionResponseWrapper,
    create_response_serde,
    create_subscription_serde,
)

_OPERATOR_PREFIX = "KTABLE-FK-JOIN"


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
    step = left_table._builder.graph.choose_step_name(f"{_OPERATOR_PREFIX}-OUTPUT", name)
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
    check_same_application(step, left_table, right_table)
    check_callable(step, foreign_key, KEY_VALUE_ARGUMENTS)
    check_callable(step, joiner, ("value", "other_value"))
    for table in (left_table, right_table):
        refuse_expiring_rows(step, table, "joined rows")
    partitioner = None
    if other_partitioner is not None:
        check_callable(step, other_partitioner, ("key", "value", "partitions"))
        partitioner = _create_key_partitioner(other_partitioner)
    join = _ForeignKeyJoin(left_table, right_table, step, name)
    resolver = join.add_response_resolver(joiner, foreign_key, left=left)
    join.add_subscription_steps(foreign_key, resolver, partitioner, left=left)
    result = None if name is None else f"{name}-result"
    key = left_table._key
    return create_table(
        join.builder,
        f"{_OPERATOR_PREFIX}-OUTPUT",
        resolver,
        key,
        value,
        store,
        result,
        traits=UNKNOWN_STEP,
    )


class _ForeignKeyJoin:
    """Adds the steps of one join, from the left table to the right one and back."""

    def __init__(
        self, left: Table[Any, Any], right: Table[Any, Any], step: str, name: str | None
    ) -> None:
        self.builder = left._builder
        self._left, self._right, self._name = left, right, name
        self._subscription_topic = self._name_topic(
            "SUBSCRIPTION-REGISTRATION", "subscription-registration"
        )
        self._row_key = key = require_serde(left._key, "key", step)
        row = require_serde(left._value, "value", step)
        self._other_key = require_serde(right._key, "key", f"{step} (the other table)")
        self._other_value = require_serde(right._value, "value", f"{step} (the other table)")
        # Keys inside a subscription and hashed values are in no topic of their own: their serdes
        # get Kafka Streams' pseudo-topics, whose names end in -pk, -fk and -vh.
        within = self._subscription_topic
        self.serdes = ForeignKeySerdes(
            key.for_topic(f"{within}-pk", "key"),
            row.for_topic(f"{within}-vh", "value"),
            self._other_key.for_topic(f"{within}-fk", "key"),
        )
        left._view.enable_sending_old_values()
        right._view.enable_sending_old_values()
        graph = self.builder.graph
        self._subscription_sink = graph.choose_step_name(
            "KTABLE-SINK", name and f"{name}-subscription-registration-sink"
        )
        self._response_serde = create_response_serde(self._other_value)
        self._response_topic = self._name_topic("SUBSCRIPTION-RESPONSE", "subscription-response")

    def add_response_resolver(
        self,
        joiner: Callable[[Any, Any], Any],
        foreign_key: Callable[[Any, Any], Any],
        *,
        left: bool,
    ) -> ProcessorNode:
        """Add the last step, which turns subscription responses into rows of the result."""
        responses = self._add_source(
            self._response_topic, "response", self._row_key, self._response_serde
        )
        self.builder.graph.copartitioned.append((self._left._node, responses))
        view, asking = self._left._view, None if left else self._subscription_sink
        return self.add_step(
            "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR",
            "subscription-response-resolver",
            responses,
            join_responses(
                view,
                joiner,
                foreign_key,
                self.serdes,
                is_left_join=left,
                subscription_step=asking,
                from_one_topic=not _find_upstream_sources(self._left._node).isdisjoint(
                    _find_upstream_sources(self._right._node)
                ),
            ),
            stores=view.require_readable_stores(),
            traits=StepTraits(names_children=True),
        )

    def add_subscription_steps(
        self,
        foreign_key: Callable[[Any, Any], Any],
        resolver: ProcessorNode,
        partitioner: Partitioner | None,
        *,
        left: bool,
    ) -> None:
        """Add the steps from subscriptions of the left table to responses of the right one."""
        serde = create_subscription_serde(self.serdes.key, self.serdes.value.message_type)
        sender = self.add_step(
            "SUBSCRIPTION-REGISTRATION",
            "subscription-registration-processor",
            self._left._node,
            self._create_subscription_sender(foreign_key, left=left),
        )
        topic = self._subscription_topic
        self._add_sink(
            self._subscription_sink,
            (sender,) if left else (sender, resolver),
            topic,
            self._other_key,
            serde,
            partitioner,
        )
        subscriptions = self._add_source(topic, "registration", self._other_key, serde)
        self.builder.graph.copartitioned.append((self._right._node, subscriptions))
        graph = self.builder.graph
        spec = StoreSpec(
            name=graph.resolve_internal_name(
                self._name_step("SUBSCRIPTION-STATE-STORE", "subscription-store")
            ),
            key=serdes.bytes,
            value=serde,
            caching=False,
            has_default_medium=True,
        )
        graph.declare_store(spec, owner=self)
        receiver = self.add_step(
            "SUBSCRIPTION-PROCESSOR",
            "subscription-receive",
            subscriptions,
            store_subscriptions(spec.name, self.serdes),
            stores=[spec.name],
        )
        finder = self.add_step(
            "SUBSCRIPTION-PROCESSOR",
            "subscription-join-foreign",
            receiver,
            join_subscriptions(self._right._view),
            stores=self._right._view.require_readable_stores(),
        )
        responder = self.add_step(
            "SUBSCRIPTION-PROCESSOR",
            "foreign-join-subscription",
            self._right._node,
            respond_to_subscribers(self._right._view, spec.name, self.serdes),
            stores=[spec.name],
        )
        sink = self._name and f"{self._name}-subscription-response-sink"
        self._add_sink(
            graph.choose_step_name("KTABLE-SINK", sink),
            (finder, responder),
            self._response_topic,
            self._row_key,
            self._response_serde,
            _choose_subscriber_partition,
        )

    def _create_subscription_sender(
        self, foreign_key: Callable[[Any, Any], Any], *, left: bool
    ) -> Operator:
        """Return the operator that sends the subscriptions of the left table's rows."""
        row_topics = [source.topic for source in _find_upstream_sources(self._left._node)]
        return send_subscriptions(
            self._left._view, foreign_key, self.serdes, is_left_join=left, row_topics=row_topics
        )

    def add_step(
        self,
        kind: str,
        suffix: str,
        parent: Node,
        operator: Operator,
        stores: list[str] | None = None,
        traits: StepTraits = UNKNOWN_STEP,
    ) -> ProcessorNode:
        """Add a processor step with the name that Kafka Streams would give it."""
        name = None if self._name is None else f"{self._name}-{suffix}"
        return self.builder.add_step(
            f"{_OPERATOR_PREFIX}-{kind}",
            parent,
            operator,
            name=name,
            stores=stores or [],
            traits=traits,
        )

    def _name_step(self, kind: str, suffix: str) -> str:
        """Return the name of a step: from the join's own name, or generated."""
        given = None if self._name is None else f"{self._name}-{suffix}"
        return self.builder.graph.choose_step_name(f"{_OPERATOR_PREFIX}-{kind}", given)

    def _name_topic(self, kind: str, suffix: str) -> str:
        """Return the name of an internal topic, of which `internal_names` may have another."""
        base = self._name_step(kind, suffix)
        name = self.builder.graph.resolve_internal_name(f"{base}-topic")
        return f"{self.builder.application_id}-{name}"

    def _add_sink(
        self,
        name: str,
        parents: tuple[Node, ...],
        topic: str,
        key: Serde[Any],
        value: Serde[Any],
        partitioner: Partitioner | None = None,
    ) -> None:
        """Add a sink that writes an internal topic."""
        self.builder.graph.add_node(
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

    def _add_source(self, topic: str, role: str, key: Serde[Any], value: Serde[Any]) -> SourceNode:
        """Add a source that reads an internal topic."""
        graph = self.builder.graph
        given = None if self._name is None else f"{self._name}-subscription-{role}-source"
        name = graph.choose_step_name("KTABLE-SOURCE", given)
        source = SourceNode(name=name, topic=topic, key=key, value=value, internal=True)
        graph.add_node(source)
        return source


def _create_key_partitioner(partitioner: Partitioner) -> Partitioner:
    """Return a partitioner of subscriptions that hands `partitioner` the key alone.

    A subscription without a key is only answered, so any partition will do: None.
    """

    def partition_by_key(key: Any, value: Any, count: int) -> int | None:
        chosen = None if key is None else partitioner(key, None, count)
        if isinstance(chosen, Iterable):
            raise TypeError(
                f"other_partitioner chose {chosen!r:.100}: in a foreign-key join it returns one "
                "partition, or None to let the key decide"
            )
        return chosen

    return partition_by_key


def _find_upstream_sources(node: Node) -> set[SourceNode]:
    """Return the source nodes upstream of `node`."""
    if isinstance(node, SourceNode):
        return {node}
    return set[SourceNode]().union(*map(_find_upstream_sources, node.parents))


def _choose_subscriber_partition(
    key: Any, value: SubscriptionResponseWrapper, count: int
) -> int | None:
    """Return the partition of the subscribed left row, to which the response must go.

    None, for a partition by key, where a subscription of an earlier version did not name it.
    """
    return value.partition
