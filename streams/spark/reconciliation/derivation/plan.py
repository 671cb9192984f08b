"""Plan how Spark computes the expected rows of each store and topic of one sub-topology."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from streams.errors import UserError
from streams.graph.nodes import (
    Node,
    SinkNode,
    SourceNode,
    StoreKind,
    StoreSpec,
)
from streams.settings.exception_handlers import ExceptionHandlers
from streams.spark.reconciliation.accounts import (
    KEY_COLUMNS,
    Account,
    AccountKind,
    RefusedCheck,
)
from streams.spark.reconciliation.derivation.aggregation import (
    ComputedTable,
    select_expired_windows,
)
from streams.spark.reconciliation.derivation.computable_steps import ComputableSteps, SourceRecords
from streams.spark.reconciliation.derivation.determinism import (
    Determinism,
    DeterminismAnalysis,
    StepDeterminism,
    emits_closed_windows,
    explain_why_not_compared,
    find_ancestors,
    find_source_topics,
    is_stateless,
)
from streams.spark.reconciliation.derivation.executors import map_on_executors
from streams.spark.reconciliation.derivation.ledger_candidates import (
    LedgerCandidate,
    LedgerReplay,
    LedgerTasks,
)
from streams.spark.reconciliation.derivation.origins import (
    RESULT_COLUMNS,
    select_origins,
    select_result_origins,
)
from streams.spark.reconciliation.derivation.replay import (
    STORE_PREFIX,
    replay_partitions,
    run_steps_without_records,
)
from streams.spark.reconciliation.derivation.row_schemas import MADE
from streams.spark.reconciliation.derivation.subgraphs import group_sinks_by_topic
from streams.topology.build import Subtopology

MethodName: TypeAlias = str

COMPUTED = "computed by Spark"
ONE_BY_ONE = "record by record, by the application's functions"
IN_ORDER = "replayed in the order of the offsets, by the application's own steps"
BY_LEDGER = "replayed in the order of the ledger, by the application's own steps"


@dataclass(slots=True)
class SubtopologyAccounts:
    """Collects a sub-topology's stores and topics with expected rows, and the refusals.

    `written_records`: its records for each topic, with the columns of MADE, if each of them is
    determined.
    """

    accounts: list[Account] = field(default_factory=list)
    refusals: list[RefusedCheck] = field(default_factory=list)
    written_records: dict[str, DataFrame] = field(default_factory=dict)


def plan_accounts(
    subtopology: Subtopology,
    source_records: Mapping[str, SourceRecords],
    handlers: ExceptionHandlers,
    partition_counts: Mapping[str, int],
    compacted_topics: Collection[str] = (),
    tasks: LedgerTasks | None = None,
) -> SubtopologyAccounts:
    """Plan the expected rows of a sub-topology's stores and topics from its source records.

    `partition_counts`: of the topics of which it matters where records go. Of `compacted_topics`
    only the last record of a key is known. `tasks`: what the ledger says of the tasks.
    """
    plan = _AccountPlanner(
        subtopology, source_records, handlers, partition_counts, compacted_topics, tasks
    )
    for spec in subtopology.stores:
        plan.plan_store(spec)
    for node in subtopology.nodes:
        if isinstance(node, SinkNode) and not isinstance(node.topic, str):
            plan.add_refusal(node.name, f"which topic a record goes to is {node.topic_name}")
    for topic, sinks in group_sinks_by_topic(subtopology.nodes).items():
        plan.plan_topic(topic, sinks)
    plan.add_accounts_by_ledger_replay()
    return plan.result


class _AccountPlanner:
    """Plans the expected rows of one sub-topology and collects them in `result`."""

    def __init__(
        self,
        subtopology: Subtopology,
        reads: Mapping[str, SourceRecords],
        handlers: ExceptionHandlers,
        partitions: Mapping[str, int],
        compacted: Collection[str],
        tasks: LedgerTasks | None,
    ) -> None:
        self.result = SubtopologyAccounts()
        self._handlers = handlers
        self._partition_counts = partitions
        self._tasks = tasks
        self._left_to_ledger: list[LedgerCandidate] = []
        self._subtopology = subtopology
        self._source_records = reads
        self._computable = ComputableSteps(
            subtopology, reads, handlers, partitions, frozenset(compacted)
        )
        shuffled = [topic for topic, read in reads.items() if not read.is_ordered]
        self._determinism = DeterminismAnalysis(
            subtopology,
            self._computable.computed_tables,
            shuffled,
            compacted,
            self._computable.joined_streams,
        )

    def add_refusal(self, step: str, reason: str) -> None:
        """Add a refusal with its reason, unless it is there already."""
        refusal = RefusedCheck(step, self._subtopology.number, reason)
        if refusal not in self.result.refusals:
            self.result.refusals.append(refusal)

    def plan_store(self, spec: StoreSpec) -> None:
        """Add the expected rows of a store, or the refusal that says why there are none."""
        if spec.source_topic is not None:
            return  # its rows are those of that topic
        if why := explain_why_not_compared(spec):
            self.add_refusal(spec.name, why)
            return
        writers = self._determinism.find_store_writers(spec)
        [first, *others] = writers
        if not others and (table := self._computable.computed_tables.get(first)) is not None:
            self._add_account(
                spec.name,
                AccountKind.STORE,
                COMPUTED,
                table.rows,
                self._find_table_origins(table),
                expired_rows=table.expired_rows,
                compares_timestamps=True,
            )
            return
        flow = self._downgrade_after_failure(
            writers, self._determinism.find_store_determinism(spec)
        )
        if flow.determinism is Determinism.UNKNOWN:
            self._left_to_ledger.append(LedgerCandidate(spec.name, writers, flow, spec))
            return
        computed = self._compute_rows(spec.name, [list(writers)], (spec.name,))
        if computed is None:
            return
        self._add_replayed_store(spec, *computed, writers)

    def _add_replayed_store(
        self, spec: StoreSpec, rows: DataFrame, method: str, writers: Iterable[Node]
    ) -> None:
        """Add the rows that the application's own steps have left in a store."""
        expired_rows = None
        if spec.retention_ms is not None:
            time = "window_end" if spec.kind is StoreKind.SESSION else "window_start"
            expired_rows = select_expired_windows(rows, time, spec.retention_ms)
        self._add_account(
            spec.name,
            AccountKind.STORE,
            method,
            rows,
            self._select_source_positions(writers),
            expired_rows=expired_rows,
        )

    def plan_topic(self, topic: str, sinks: list[SinkNode]) -> None:
        """Add the expected rows of a written topic, or the refusal that says why there are none."""
        flows = map(self._determinism.find_step_determinism, sinks)
        flow = self._downgrade_after_failure(sinks, min(flows, key=lambda each: each.determinism))
        if flow.determinism is Determinism.LAST and len(sinks) > 1:
            why = f"{len(sinks)} steps write to it, of tables: {', '.join(s.name for s in sinks)}"
            flow = StepDeterminism(Determinism.UNKNOWN, topic, why)
        if flow.determinism is Determinism.UNKNOWN:
            self._left_to_ledger.append(LedgerCandidate(topic, sinks, flow))
            return
        computed = self._compute_rows(topic, ([sink] for sink in sinks))
        if computed is None:
            return
        frame, how = computed
        if flow.determinism is Determinism.EACH:
            self.result.written_records[topic] = frame
            origins = self._find_result_origins(frame, sinks, how)
            self._add_account(topic, AccountKind.STREAM, how, frame, origins)
            return
        frame = _select_last_row_per_key(frame)
        [sink] = sinks
        self._add_account(
            topic, AccountKind.UPSERTS, how, frame, self._select_source_positions([sink])
        )

    def add_accounts_by_ledger_replay(self) -> None:
        """Add the accounts that the ledger's order of records makes computable; refuse the rest."""
        replay = LedgerReplay(
            self._subtopology,
            {
                topic: read.records
                for topic, read in self._source_records.items()
                if read.is_ordered
            },
            self._handlers,
            self._partition_counts,
            self._tasks,
        )
        rows, refused = replay.run_candidates(self._left_to_ledger)
        for _, flow in refused:
            self.add_refusal(flow.step, flow.reason)
        for candidate, frame in rows:
            name, nodes = candidate.name, candidate.nodes
            if candidate.store is not None:
                self._add_replayed_store(candidate.store, frame, BY_LEDGER, nodes)
                continue
            self.result.written_records[name] = frame
            origins = select_origins(frame, *RESULT_COLUMNS)
            self._add_account(name, AccountKind.STREAM, BY_LEDGER, frame, origins)

    def _downgrade_after_failure(
        self, nodes: Iterable[Node], flow: StepDeterminism
    ) -> StepDeterminism:
        """Return UNKNOWN if Spark failed upstream and order is lost, otherwise `flow`."""
        ancestors = set().union(*map(find_ancestors, nodes))
        for node, (step, why) in self._computable.failures.items():
            if node in ancestors and not self._computable.are_in_topic_order(ancestors):
                return StepDeterminism(Determinism.UNKNOWN, step, why)
        return flow

    def _compute_rows(
        self, name: str, groups: Iterable[list[Node]], stores: tuple[str, ...] = ()
    ) -> tuple[DataFrame, MethodName] | None:
        """Compute what groups of steps write to a topic, or to the one store of `stores`.

        Returns the rows and the method, or adds a refusal and returns None.
        """
        target = STORE_PREFIX + name if stores else name
        try:
            computed = [self._run_steps(nodes, stores) for nodes in groups]
        except UserError as error:
            self.add_refusal(name, str(error))
            return None
        rows = (frame.where(f.col("target") == target) for frame, _ in computed)
        return reduce(DataFrame.unionByName, rows), computed[-1][1]

    def _run_steps(
        self, nodes: list[Node], stores: tuple[str, ...]
    ) -> tuple[DataFrame, MethodName]:
        """Run the steps up to `nodes` by the simplest method; return rows and method."""
        computable = self._computable
        ancestors = set().union(
            *(
                find_ancestors(node, {*computable.final_rows, *computable.joined_streams})
                for node in nodes
            )
        )
        tables = [node for node in ancestors if node in computable.final_rows]
        others = any(
            isinstance(node, SourceNode) or node in computable.joined_streams for node in ancestors
        )
        if tables and not others:
            return computable.replay_after_tables(nodes, tables, stores), COMPUTED
        if not stores and all(is_stateless(node, computable.joined_streams) for node in nodes):
            how = COMPUTED if ancestors & computable.joined_streams.keys() else ONE_BY_ONE
            return computable.replay_each_record(computable.create_replay_work(nodes), nodes), how
        work = computable.create_replay_work(nodes, stores)
        run_steps_without_records(work)
        ordered = (
            self._read_source_topics(nodes)
            .repartition("partition")
            .sortWithinPartitions("partition", "topic", "offset")
        )
        return map_on_executors(ordered, replay_partitions, work, MADE), IN_ORDER

    @staticmethod
    def _find_table_origins(table: ComputedTable) -> DataFrame:
        """Return the positions of the source records behind each key and window of a table."""
        if table.rule.windows is None:
            return select_origins(table.window_records, "key")
        return select_origins(table.window_records, *KEY_COLUMNS)

    def _find_result_origins(
        self, results: DataFrame, sinks: list[SinkNode], method: str
    ) -> DataFrame | None:
        """Return the positions of the source records of each result that `sinks` write."""
        before = set().union(*map(find_ancestors, sinks))
        if method == IN_ORDER and any(emits_closed_windows(node) for node in before):
            # The record that closed a window is not what went into it.
            return self._select_source_positions(sinks)
        return select_result_origins(results, self._computable.find_window_records(before))

    def _select_source_positions(self, nodes: Iterable[Node]) -> DataFrame | None:
        """Return keys and positions of the source records, or None if the positions are unknown."""
        topics = find_source_topics(nodes)
        if not all(self._source_records[topic].is_ordered for topic in topics):
            return None
        return select_origins(self._read_source_topics(nodes), "key")

    def _read_source_topics(self, nodes: Iterable[Node]) -> DataFrame:
        """Return the records of all source topics of these steps."""
        topics = sorted(find_source_topics(nodes))
        return reduce(
            DataFrame.unionByName, (self._source_records[topic].records for topic in topics)
        )

    def _add_account(
        self,
        name: str,
        kind: AccountKind,
        method: str,
        rows: DataFrame,
        origins: DataFrame | None,
        *,
        expired_rows: DataFrame | None = None,
        compares_timestamps: bool = False,
    ) -> None:
        """Add a store or topic with its expected rows to the result."""
        self.result.accounts.append(
            Account(
                name=name,
                kind=kind,
                subtopology=self._subtopology.number,
                method=method,
                expected=rows.select("key", "window_start", "window_end", "value", "timestamp"),
                origins=origins,
                compares_timestamps=compares_timestamps or kind is AccountKind.STREAM,
                expired_rows=expired_rows,
            )
        )


def _select_last_row_per_key(output_rows: DataFrame) -> DataFrame:
    """Select the last row of each key, leaving out keys whose last row is a deletion."""
    row = f.struct("value", "timestamp")
    last = output_rows.groupBy("key").agg(f.max_by(row, f.col("number")).alias("last"))
    null = f.lit(None).cast("long")
    return last.where(f.col("last.value").isNotNull()).select(
        "key",
        null.alias("window_start"),
        null.alias("window_end"),
        f.col("last.value").alias("value"),
        f.col("last.timestamp").alias("timestamp"),
    )
