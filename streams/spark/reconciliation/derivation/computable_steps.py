"""Compute joins and aggregations of a sub-topology with Spark where record order is irrelevant.

These are joins of streams, and aggregations: what follows from them is computed from these results,
and their own operators are not run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from streams.dsl.windowed import create_windowed_key_serde
from streams.errors import UserError
from streams.graph.nodes import Node, Operator, ProcessorNode, SourceNode, StoreSpec
from streams.settings.exception_handlers import ExceptionHandlers
from streams.spark.reconciliation.accounts import RefusalReason
from streams.spark.reconciliation.derivation.aggregation import (
    ComputedTable,
    compute_table,
    encode_int64,
    is_computable,
)
from streams.spark.reconciliation.derivation.determinism import (
    find_ancestors,
    find_source_topics,
    is_stateless,
)
from streams.spark.reconciliation.derivation.executors import map_on_executors
from streams.spark.reconciliation.derivation.origins import build_row_identity
from streams.spark.reconciliation.derivation.replay import (
    STEP_PREFIX,
    ReplayWork,
    create_capture_operator,
    pickle_or_cloudpickle,
    replay_each_record,
    serialize_as_empty,
)
from streams.spark.reconciliation.derivation.row_schemas import MADE, READ
from streams.spark.reconciliation.derivation.stream_joins import (
    JoinedStream,
    join_streams_or_explain_doubt,
)
from streams.spark.reconciliation.derivation.subgraphs import (
    create_known_results_source,
    extract_steps,
)
from streams.topology.build import Subtopology
from streams.topology.rules import AggregationRule, StreamJoinRule, SuppressionRule


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """Represents the records of a source topic as rows of the schema READ.

    `is_ordered`: whether they have their offsets.
    """

    records: DataFrame
    is_ordered: bool = True


class ComputableSteps:
    """Computes with Spark those steps of a sub-topology whose results don't need record order.

    `source_records`: what its source topics had. `partition_counts`: of the topics of which it
    matters where records go. Of `compacted_topics` only the last record of a key is known.
    """

    def __init__(
        self,
        subtopology: Subtopology,
        source_records: Mapping[str, SourceRecords],
        handlers: ExceptionHandlers,
        partition_counts: Mapping[str, int],
        compacted_topics: frozenset[str],
    ) -> None:
        self._compacted = compacted_topics
        self._subtopology = subtopology
        self._source_records = source_records
        self._handlers = handlers
        self._partition_counts = partition_counts
        self._specs = {spec.name: spec for spec in subtopology.stores}
        self.failures: dict[Node, tuple[str, str]] = {}
        """What Spark could not compute: the name to give, and why."""
        self.joined_streams: dict[Node, JoinedStream] = {}
        self._compute_joins()
        self.computed_tables = self._compute_tables()
        self.final_rows = self._select_final_rows()
        """Of the tables, and of those that hold them back, what is passed on at last."""

    def are_in_topic_order(self, nodes: Iterable[Node]) -> bool:
        """Return whether the records that reach these steps come from one topic, in its order."""
        topics = {node.topic for node in nodes if isinstance(node, SourceNode)}
        return len(topics) == 1 and all(self._source_records[topic].is_ordered for topic in topics)

    def _compute_joins(self) -> None:
        """Compute the stream joins that Spark can compute, those upstream of others first."""
        for node in self._subtopology.nodes:
            rule = node.rule if isinstance(node, ProcessorNode) and not node.stores else None
            if not isinstance(rule, StreamJoinRule) or self.are_in_topic_order(
                find_ancestors(node)
            ):
                continue
            if self._compacted & find_source_topics([node]):
                continue
            windowed = [side.parents[0] for side in node.parents]
            if not all(
                is_stateless(p, self.joined_streams) for side in windowed for p in side.parents
            ):
                continue
            try:
                result = self._compute_join(rule, *windowed)
            except UserError as error:
                result = str(error)
            if isinstance(result, JoinedStream):
                self.joined_streams[node] = result
            else:
                self.failures |= dict.fromkeys((node, *node.parents), (rule.step, result))

    def _compute_join(
        self, rule: StreamJoinRule, left: Node, right: Node
    ) -> JoinedStream | RefusalReason:
        """Compute a join of two streams, or return why Spark can't compute it."""
        if rule.emit_interval_ms is not None:
            return (
                "when a record that has met nobody is joined with None depends on the order in "
                "which the two streams were read, which the inputs don't tell"
            )
        this, other = self._specs[rule.this_store], self._specs[rule.other_store]
        if this.key.name != other.key.name:
            return f"its stores have keys of {this.key.name} and of {other.key.name}"
        instead = {
            left: create_capture_operator(left.name, this.key.serialize, this.value.serialize),
            right: create_capture_operator(right.name, this.key.serialize, other.value.serialize),
        }
        records = self.replay_each_record(
            self.create_replay_work([left, right], operators_by_node=instead), [left, right]
        )
        lefts, rights = (
            records.where(f.col("target") == STEP_PREFIX + side.name) for side in (left, right)
        )
        return join_streams_or_explain_doubt(
            rule, lefts, rights, (this, other), sorted(find_source_topics([left]))
        )

    def _compute_tables(self) -> dict[Node, ComputedTable]:
        """Compute the tables of aggregations where Spark can; add the others to `failures`."""
        tables: dict[Node, ComputedTable] = {}
        users = [n for n in self._subtopology.nodes if isinstance(n, ProcessorNode)]
        for node in users:
            if not isinstance(node.rule, AggregationRule) or len(node.stores) != 1:
                continue
            spec = self._specs[node.stores[0]]
            is_only_user = not any(
                n is not node and n.rule and spec.name in n.stores for n in users
            )
            is_input_stateless = all(
                is_stateless(parent, self.joined_streams) for parent in node.parents
            )
            is_complete = not self._compacted & find_source_topics([node])
            if is_only_user and is_input_stateless and is_complete and is_computable(node, spec):
                try:
                    table = self._compute_aggregation(node, node.rule, spec)
                except UserError as error:
                    table = str(error)
                if isinstance(table, ComputedTable):
                    tables[node] = table
                else:
                    self.failures[node] = node.name, table
        return tables

    def _compute_aggregation(
        self, node: ProcessorNode, rule: AggregationRule, spec: StoreSpec
    ) -> ComputedTable | RefusalReason:
        """Compute the table of an aggregation, or return why Spark can't compute it."""
        serialize_value = serialize_as_empty if rule.folding.is_count else pickle_or_cloudpickle
        operator = create_capture_operator(node.name, spec.key.serialize, serialize_value)
        work = self.create_replay_work([node], operators_by_node={node: operator})
        records = self.replay_each_record(work, [node]).where(
            f.col("target") == STEP_PREFIX + node.name
        )
        topics = find_source_topics([node])
        in_order = self.are_in_topic_order(find_ancestors(node))
        if not all(self._source_records[t].is_ordered for t in topics):
            records = records.withColumn("offset", f.lit(-1).cast("long"))
        return compute_table(node.name, rule, spec, records, is_ordered=in_order)

    def _select_final_rows(self) -> dict[Node, DataFrame]:
        """Select from each computed table the final rows that it or a suppression forwards."""
        final_rows: dict[Node, DataFrame] = {}
        for node, table in self.computed_tables.items():
            final_rows[node] = table.closed_rows if table.rule.on_close else table.rows
            for child in self._subtopology.nodes:
                held = child.rule if isinstance(child, ProcessorNode) else None
                if node in child.parents and isinstance(held, SuppressionRule) and held.final_only:
                    final_rows[child] = table.closed_rows
        return final_rows

    def find_window_records(self, nodes: Collection[Node]) -> dict[str, DataFrame]:
        """Find the input records of each window of the final windowed tables among `nodes`.

        They are returned by the topic that stands for the table in `replay_after_tables`.
        """
        return {
            STEP_PREFIX + node.name: table.window_records
            for node in self.final_rows
            if node in nodes
            and (table := self._find_forwarded_table(node)).rule.windows is not None
        }

    def _find_forwarded_table(self, node: Node) -> ComputedTable:
        """Return the computed table whose final rows a node of `final_rows` forwards."""
        origin = node if node in self.computed_tables else node.parents[0]
        return self.computed_tables[origin]

    def replay_after_tables(
        self, nodes: list[Node], tables: list[Node], stores: tuple[str, ...]
    ) -> DataFrame:
        """Replay the steps from `tables` to `nodes`; return what reaches `nodes` or `stores`."""
        given: dict[Node, list[SourceNode]] = {}
        rows: list[DataFrame] = []
        for table in tables:
            known = self._find_forwarded_table(table)
            spec, windows = known.spec, known.rule.windows
            key = spec.key if windows is None else create_windowed_key_serde(spec.key, windows)
            topic = STEP_PREFIX + table.name
            given[table] = [create_known_results_source(topic, key, spec.value)]
            rows.append(
                _to_source_records(self.final_rows[table], topic, windowed=windows is not None)
            )
        work = self.create_replay_work(nodes, stores, known_sources=given)
        records = reduce(DataFrame.unionByName, rows)
        return map_on_executors(records, replay_each_record, work, MADE)

    def create_replay_work(
        self,
        nodes: Iterable[Node],
        stores: tuple[str, ...] = (),
        *,
        operators_by_node: Mapping[Node, Operator] | None = None,
        known_sources: Mapping[Node, Sequence[SourceNode]] | None = None,
    ) -> ReplayWork:
        """Create the work that executors replay for `nodes`: their upstream steps, and handlers."""
        sources = {node: join.sources for node, join in self.joined_streams.items()} | dict(
            known_sources or {}
        )
        subtopology = extract_steps(
            self._subtopology, nodes, operators_by_node=operators_by_node, known_sources=sources
        )
        return ReplayWork(subtopology, self._handlers, stores, self._partition_counts)

    def replay_each_record(self, replay_work: ReplayWork, nodes: Iterable[Node]) -> DataFrame:
        """Replay the steps up to `nodes` on each record of their topics and joins, one by one."""
        before = set().union(*(find_ancestors(node, self.joined_streams) for node in nodes))
        topics = {node.topic for node in before if isinstance(node, SourceNode)}
        frames = [self._source_records[topic].records for topic in sorted(topics)]
        frames += [join.rows for node, join in self.joined_streams.items() if node in before]
        records = reduce(DataFrame.unionByName, frames)
        return map_on_executors(records, replay_each_record, replay_work, MADE)


def _to_source_records(rows: DataFrame, topic: str, *, windowed: bool) -> DataFrame:
    """Convert the rows of a table to records of the topic `topic`, with the columns of READ.

    Their offsets identify the rows, and are in no order.
    """
    key = f.concat("key", encode_int64(f.col("window_start"))) if windowed else f.col("key")
    return rows.select(
        key.alias("key"),
        "value",
        f.lit(topic).alias("topic"),
        f.col("partition").cast("int").alias("partition"),
        build_row_identity().alias("offset"),
        "timestamp",
    ).select(*READ.names)
