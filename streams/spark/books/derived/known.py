"""Compute with Spark the results of those steps of a sub-topology that allow it.

These are joins of streams, and aggregations: what follows from them is computed from these results,
and their own operators are not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from streams.dsl.windowed import windowed_key_serde
from streams.errors import UserError
from streams.exception_handlers import ExceptionHandlers
from streams.spark.books.derived.arrow import map_in_arrow
from streams.spark.books.derived.computing import Computed, computed, is_computable, takes_values
from streams.spark.books.derived.flows import above, is_one_by_one, topics_above
from streams.spark.books.derived.frames import as_read
from streams.spark.books.derived.joining import Joined, joined
from streams.spark.books.derived.pieces import piece, source_of
from streams.spark.books.derived.replay import TAPPED, Each, Work, nothing_of, pickled, tap
from streams.spark.books.derived.rows import MADE_DDL
from streams.spark.books.derived.shipping import shipped
from streams.topology.build import Subtopology
from streams.topology.nodes import Node, Operator, ProcessorNode, SourceNode, StoreSpec
from streams.topology.rules import AggregationRule, StreamJoinRule, SuppressionRule


@dataclass(frozen=True, slots=True)
class Read:
    """Represents the records of a source topic, with the columns of READ.

    `is_ordered`: whether they have their offsets.
    """

    frame: DataFrame
    ordered: bool = True


class Known:
    """Finds the steps of a sub-topology whose results Spark computes, and computes them.

    `source_records`: what its source topics had. `partition_counts`: of the topics of which it
    matters where records go. Of `compacted_topics` only the last record of a key is known.
    """

    def __init__(
        self,
        subtopology: Subtopology,
        reads: Mapping[str, Read],
        handlers: ExceptionHandlers,
        partitions: Mapping[str, int],
        compacted: frozenset[str],
    ) -> None:
        self._compacted = compacted
        self._sub = subtopology
        self._reads = reads
        self._handlers = handlers
        self._partitions = partitions
        self._specs = {spec.name: spec for spec in subtopology.stores}
        self.failed: dict[Node, tuple[str, str]] = {}
        """What Spark could not compute: the name to give, and why."""
        self.joins: dict[Node, Joined] = {}
        self._find_joins()
        self.tables = self._computing()
        self.rows = self._known_rows()
        """Of the tables, and of those that hold them back, what is passed on at last."""

    def in_order(self, nodes: Iterable[Node]) -> bool:
        """Whether the records that come to these steps are of one topic, in its order."""
        topics = {node.topic for node in nodes if isinstance(node, SourceNode)}
        return len(topics) == 1 and all(self._reads[topic].ordered for topic in topics)

    def _find_joins(self) -> None:
        """Find the joins of streams that Spark computes; those before others come first."""
        for node in self._sub.nodes:
            rule = node.rule if isinstance(node, ProcessorNode) and not node.stores else None
            if not isinstance(rule, StreamJoinRule) or self.in_order(above(node)):
                continue
            if self._compacted & topics_above([node]):
                continue
            windowed = [side.parents[0] for side in node.parents]
            if not all(is_one_by_one(p, self.joins) for side in windowed for p in side.parents):
                continue
            try:
                result = self._join(rule, *windowed)
            except UserError as error:
                result = str(error)
            if isinstance(result, Joined):
                self.joins[node] = result
            else:
                self.failed |= dict.fromkeys((node, *node.parents), (rule.step, result))

    def _join(self, rule: StreamJoinRule, left: Node, right: Node) -> Joined | str:
        """Compute a join of two streams, or return why that isn't possible."""
        if rule.emit_interval_ms is not None:
            return (
                "when a record that has met nobody is joined with None depends on the order in "
                "which the two streams were read, which the inputs don't tell"
            )
        this, other = self._specs[rule.this_store], self._specs[rule.other_store]
        if this.key.name != other.key.name:
            return f"its stores have keys of {this.key.name} and of {other.key.name}"
        instead = {
            left: tap(left.name, this.key.serialize, this.value.serialize),
            right: tap(right.name, this.key.serialize, other.value.serialize),
        }
        records = self.each(self.work([left, right], instead=instead), [left, right])
        lefts, rights = (
            records.where(f.col("target") == TAPPED + side.name) for side in (left, right)
        )
        return joined(rule, lefts, rights, (this, other), sorted(topics_above([left])))

    def _computing(self) -> dict[Node, Computed]:
        """Compute the tables of the steps that allow it; the others are added to `failures`."""
        tables: dict[Node, Computed] = {}
        users = [n for n in self._sub.nodes if isinstance(n, ProcessorNode)]
        for node in users:
            if not isinstance(node.rule, AggregationRule) or len(node.stores) != 1:
                continue
            spec = self._specs[node.stores[0]]
            is_only_user = not any(
                n is not node and n.rule and spec.name in n.stores for n in users
            )
            is_input_stateless = all(is_one_by_one(parent, self.joins) for parent in node.parents)
            is_complete = not self._compacted & topics_above([node])
            if is_only_user and is_input_stateless and is_complete and is_computable(node, spec):
                try:
                    table = self._compute(node, node.rule, spec)
                except UserError as error:
                    table = str(error)
                if isinstance(table, Computed):
                    tables[node] = table
                else:
                    self.failed[node] = node.name, table
        return tables

    def _compute(
        self, node: ProcessorNode, rule: AggregationRule, spec: StoreSpec
    ) -> Computed | str:
        """Compute the table of an aggregation, or return why that isn't possible."""
        serialize_value = pickled if takes_values(rule) else nothing_of
        operator = tap(node.name, spec.key.serialize, serialize_value)
        work = self.work([node], instead={node: operator})
        records = self.each(work, [node]).where(f.col("target") == TAPPED + node.name)
        topics = topics_above([node])
        in_order = self.in_order(above(node))
        if not all(self._reads[t].ordered for t in topics):
            records = records.withColumn("offset", f.lit(-1).cast("long"))
        return computed(node, spec, records, in_order=in_order)

    def _known_rows(self) -> dict[Node, DataFrame]:
        """Select of the computed tables the rows that are passed on at last."""
        final_rows: dict[Node, DataFrame] = {}
        for node, table in self.tables.items():
            final_rows[node] = table.closed if table.rule.on_close else table.rows
            for child in self._sub.nodes:
                held = child.rule if isinstance(child, ProcessorNode) else None
                if node in child.parents and isinstance(held, SuppressionRule) and held.final_only:
                    final_rows[child] = table.closed
        return final_rows

    def after(self, nodes: list[Node], tables: list[Node], stores: tuple[str, ...]) -> DataFrame:
        """Return what comes to `nodes`, or is in their stores, from the rows of `tables` alone."""
        given: dict[Node, list[SourceNode]] = {}
        rows: list[DataFrame] = []
        for table in tables:
            origin = table if table in self.tables else table.parents[0]
            known = self.tables[origin]
            spec, windows = known.spec, known.rule.windows
            key = spec.key if windows is None else windowed_key_serde(spec.key, windows)
            topic = TAPPED + table.name
            given[table] = [source_of(topic, key, spec.value)]
            rows.append(as_read(self.rows[table], topic, windowed=windows is not None))
        work = self.work(nodes, stores, given=given)
        return _one_by_one(work, reduce(DataFrame.unionByName, rows))

    def work(
        self,
        nodes: Iterable[Node],
        stores: tuple[str, ...] = (),
        *,
        instead: Mapping[Node, Operator] | None = None,
        given: Mapping[Node, Sequence[SourceNode]] | None = None,
    ) -> Work:
        """Create what executors replay for `nodes`: the steps before them and the handlers."""
        sources = {node: join.sources for node, join in self.joins.items()} | dict(given or {})
        subtopology = piece(self._sub, nodes, instead=instead, given=sources)
        return Work(subtopology, self._handlers, stores, self._partitions)

    def each(self, work: Work, nodes: Iterable[Node]) -> DataFrame:
        """Replay steps record by record on all that comes to `nodes`, from topics and joins."""
        before = set().union(*(above(node, self.joins) for node in nodes))
        topics = {node.topic for node in before if isinstance(node, SourceNode)}
        frames = [self._reads[topic].frame for topic in sorted(topics)]
        frames += [join.rows for node, join in self.joins.items() if node in before]
        return _one_by_one(work, reduce(DataFrame.unionByName, frames))


def _one_by_one(work: Work, records: DataFrame) -> DataFrame:
    """Replay steps on executors, record by record."""
    return map_in_arrow(records, Each(shipped(work)), MADE_DDL)
