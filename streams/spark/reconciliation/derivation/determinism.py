"""Decide how far an application's inputs alone determine the results of its steps.

    EACH      every one: they are the same however often the application commits
    LAST      the last of each key: with caching the others depend on when it commits
    UNKNOWN   neither

The order of records is determined within a partition of a topic, and between topics it isn't: a
step that keeps something of the records of two topics is UNKNOWN, but for tables, where the last
row of each key is what counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from streams.graph.nodes import Node, ProcessorNode, SinkNode, SourceNode, StoreKind, StoreSpec
from streams.topology.build import Subtopology
from streams.topology.rules import AggregationRule, StreamJoinRule, SuppressionRule

COMPACTED_REASON = (
    "is compacted (cleanup.policy) and read as a stream: which of its records were there is not "
    "known any more, so nothing follows from it"
)


class Determinism(IntEnum):
    """Names how much of a step's results the inputs determine: EACH, LAST or UNKNOWN."""

    UNKNOWN = 0
    LAST = 1
    EACH = 2


@dataclass(frozen=True, slots=True)
class StepDeterminism:
    """Represents how far the inputs determine a step's results, and why no further.

    `step` and `reason`: of the first step that isn't determined.
    """

    determinism: Determinism
    step: str = ""
    reason: str = ""


_EACH = StepDeterminism(Determinism.EACH)
_LAST = StepDeterminism(Determinism.LAST)


def is_stateless(node: Node, known_nodes: Collection[Node] = ()) -> bool:
    """Return whether a step, and each step upstream of it, handles records alone, without state.

    Steps before those of `known_nodes` don't count, since the results of these are known.
    """
    if isinstance(node, SourceNode) or node in known_nodes:
        return True
    if isinstance(node, ProcessorNode):
        if not node.traits.is_stateless:
            return False
    elif not isinstance(node, SinkNode):
        return False
    return all(is_stateless(parent, known_nodes) for parent in node.parents)


def reads_every_record(subtopology: Subtopology, topic: str) -> bool:
    """Return whether some step reads all records of a source topic, not the last of each key."""
    source = subtopology.sources[topic]
    readers = [node for node in subtopology.nodes if source in node.parents]
    return any(not isinstance(n, ProcessorNode) or not n.traits.takes_latest for n in readers)


def find_ancestors(node: Node, stop_nodes: Collection[Node] = ()) -> set[Node]:
    """Find a step and everything upstream of it, but nothing upstream of `stop_nodes`."""
    found = {node}
    left = [node]
    while left:
        at = left.pop()
        if at in stop_nodes:
            continue
        fresh = [parent for parent in at.parents if parent not in found]
        found.update(fresh)
        left += fresh
    return found


def find_source_topics(nodes: Iterable[Node]) -> set[str]:
    """Find the topics that the records of these steps originate from."""
    every = (each for node in nodes for each in find_ancestors(node))
    return {each.topic for each in every if isinstance(each, SourceNode)}


def emits_closed_windows(node: Node) -> bool:
    """Return whether a step forwards the result of a window when the window closes."""
    rule = node.rule if isinstance(node, ProcessorNode) else None
    if isinstance(rule, AggregationRule):
        return rule.on_close
    return isinstance(rule, SuppressionRule) and rule.final_only


def explain_why_not_compared(spec: StoreSpec) -> str | None:
    """Explain why the content of a store is not compared, or return None if it is."""
    if not spec.logged:
        return "the store has no changelog: nobody sees what is in it"
    if spec.ttl_ms is not None:
        return "when a row is deleted for its ttl depends on when the application commits"
    if spec.retain_duplicates:
        return "a join's own store is not compared, only what the join makes"
    if spec.kind in (StoreKind.VERSIONED, StoreKind.BUFFER):
        return f"a {spec.kind} store is not compared, only what is made of it"
    return None


def _determine_by_rule(node: ProcessorNode) -> StepDeterminism | None:
    """Return the determinism that follows from the step's rule alone, or None if none follows."""
    rule = node.rule
    if isinstance(rule, SuppressionRule):
        if rule.final_only:
            return _EACH
        return StepDeterminism(
            Determinism.UNKNOWN, node.name, "what it holds back depends on commits"
        )
    if isinstance(rule, StreamJoinRule) and rule.emit_interval_ms:
        why = "the wall clock decides when what met nobody is joined with None (emit_interval)"
        return StepDeterminism(Determinism.UNKNOWN, rule.step, why)
    return None


class DeterminismAnalysis:
    """Decides for each step of a sub-topology how far its results are determined.

    Of the steps in `final_nodes` only the last result is known, or each window once where they are
    passed on when they close. Of those in `joined_nodes` every result is known, in no order. The
    order of the records of `unordered_topics` is not known; of `compacted_topics` only the last of
    each key.
    """

    def __init__(
        self,
        subtopology: Subtopology,
        final_nodes: Collection[Node] = (),
        unordered_topics: Collection[str] = (),
        compacted_topics: Collection[str] = (),
        joined_nodes: Collection[Node] = (),
    ) -> None:
        self._compacted = compacted_topics
        self._shuffled = frozenset(unordered_topics)
        self._specs = {spec.name: spec for spec in subtopology.stores}
        self._nodes = subtopology.nodes
        self._known: dict[Node, StepDeterminism] = {}
        for node in subtopology.nodes:  # parents first
            rule = node.rule if isinstance(node, ProcessorNode) else None
            emits_closed = isinstance(rule, AggregationRule) and rule.on_close
            if node in joined_nodes:
                self._known[node] = _EACH
            elif node in final_nodes:
                self._known[node] = _EACH if emits_closed else _LAST
            else:
                self._known[node] = self._determine_step(node)

    def find_step_determinism(self, node: Node) -> StepDeterminism:
        """Return how far the results of a step are determined."""
        return self._known[node]

    def find_store_determinism(self, spec: StoreSpec) -> StepDeterminism:
        """Return how far a store's last content is determined: as its least determined writer."""
        flows = [self._known[node] for node in self.find_store_writers(spec)]
        return min(flows, key=lambda flow: flow.determinism)

    def find_store_writers(self, spec: StoreSpec) -> list[ProcessorNode]:
        """Find the steps that write a store.

        Of a table these are the step that makes it, or the steps; of others all that name the
        store.
        """
        users = [n for n in self._nodes if isinstance(n, ProcessorNode) and spec.name in n.stores]
        first = users[0]
        if not first.emits_updates:
            return users
        return [n for n in users if n is first or (n.emits_updates and n.kind == first.kind != "")]

    def _determine_step(self, node: Node) -> StepDeterminism:
        """Return how far a step's results are determined, given the determinism of its parents."""
        if isinstance(node, SourceNode):
            if node.topic in self._compacted:
                return StepDeterminism(Determinism.UNKNOWN, node.topic, f"it {COMPACTED_REASON}")
            return _EACH
        if isinstance(node, ProcessorNode) and node.traits.takes_latest:
            sources = [each for each in node.parents if isinstance(each, SourceNode)]
            if any(each.topic in self._compacted for each in sources):
                return _LAST
        incoming = min((self._known[p] for p in node.parents), key=lambda flow: flow.determinism)
        if incoming.determinism is Determinism.UNKNOWN or not isinstance(node, ProcessorNode):
            return incoming
        is_each_determined = incoming.determinism is Determinism.EACH
        if node.traits.keeps_latest or (is_each_determined and node.traits.is_stateless):
            return incoming
        if node.traits.computes_rows:
            return self._determine_table_updates(node, incoming)
        if (by_rule := _determine_by_rule(node)) is not None:
            return by_rule
        if not is_each_determined:
            why = "how many updates of a table come to it depends on when the application commits"
            return StepDeterminism(Determinism.UNKNOWN, node.name, why)
        if lost := self._explain_lost_order(node):
            return StepDeterminism(Determinism.UNKNOWN, node.name, lost)
        if node.traits.takes_latest or node.emits_updates:
            return self._determine_table_updates(node, incoming)
        return _EACH

    def _explain_lost_order(self, node: ProcessorNode) -> str | None:
        """Explain why a stateful step gets records in an unknown order, or return None if not."""
        if node.traits.looks_up_global_store is not None:
            return "what it finds in a global table depends on when it looks there"
        topics = self._find_topics_in_store(node)
        if lost := topics & self._shuffled:
            return (
                f"it depends on the order of records in {sorted(lost)}, which were deleted when "
                "they had been processed"
            )
        if len(topics) < 2:
            return None
        why = f"it keeps something of the records of {sorted(topics)}, in the order they came"
        if isinstance(node.rule, AggregationRule):
            why += "; declare it commutative=True if their order doesn't matter"
        return why

    def _determine_table_updates(
        self, node: ProcessorNode, incoming: StepDeterminism
    ) -> StepDeterminism:
        """Return LAST if a table's updates are cached or joined, otherwise `incoming`."""
        caches = any(self._specs[name].caching for name in node.stores)
        if node.traits.joins_tables or (
            caches and not (isinstance(node.rule, AggregationRule) and node.rule.on_close)
        ):
            return _LAST
        return replace(incoming)

    def _find_topics_in_store(self, node: ProcessorNode) -> set[str]:
        """Find the source topics of a step, and of the steps that share one of its stores."""
        store_users = [
            other
            for other in self._nodes
            if isinstance(other, ProcessorNode) and set(other.stores) & set(node.stores)
        ]
        if node.traits.takes_latest:
            store_users = []  # other steps only read this table's store
        return find_source_topics([node, *store_users])
