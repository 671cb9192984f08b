"""Derive results that only the ledger's order determines, by a replay of each sub-topology.

Candidates are the stores and topics of which the topics' own order tells nothing: those behind
joins of a stream with a table, joins by a foreign key, and suppressions until a time limit, for
instance. What the ledger tells nothing of either is refused: look-ups in a global table, which
takes part in no transaction, and what the wall clock decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from streams.errors import AuthenticationError, AuthorizationError, UserError
from streams.graph.nodes import GlobalTableSpec, Node, ProcessorNode, StoreSpec
from streams.ledger import LedgerTransaction
from streams.settings.exception_handlers import ExceptionHandlers
from streams.spark.reconciliation.derivation.determinism import (
    DeterminismAnalysis,
    StepDeterminism,
    find_ancestors,
)
from streams.spark.reconciliation.derivation.executors import pickle_for_executors
from streams.spark.reconciliation.derivation.global_topics import (
    GlobalTopicRead,
    find_ends_seen_by_steps,
)
from streams.spark.reconciliation.derivation.ledger_order import (
    LedgerOrder,
    collect_ledger_orders,
)
from streams.spark.reconciliation.derivation.ledger_replay import replay_in_ledger_order
from streams.spark.reconciliation.derivation.replay import (
    STORE_PREFIX,
    ReplayWork,
    run_steps_without_records,
)
from streams.spark.reconciliation.derivation.replayed_lookups import GlobalTableSource
from streams.spark.reconciliation.derivation.subgraphs import extract_steps
from streams.spark.session import to_user_error
from streams.topology.build import Subtopology, Topology
from streams.topology.rules import StreamJoinRule

ReplayedCandidate: TypeAlias = tuple["LedgerCandidate", DataFrame]
RefusedCandidate: TypeAlias = tuple["LedgerCandidate", StepDeterminism]

KeepFrame = Callable[[DataFrame], DataFrame]
PlanTopicRead = Callable[[str, Mapping[int, int], Collection[int]], GlobalTopicRead]
"""Plans the read of a global table's topic, up to offsets by partition (`plan_topic_read`)."""


@dataclass(frozen=True, slots=True)
class LedgerTasks:
    """Holds the ledger's order of records for the tasks of a sub-topology.

    `order`: None if they can't be repeated, for the reason `why`. `persist_frame` makes Spark keep
    a DataFrame until the report is released. `global_tables`: those of the application, by store.
    """

    order: LedgerOrder | None
    why: str
    persist_frame: KeepFrame
    plan_topic_read: PlanTopicRead
    global_tables: Mapping[str, GlobalTableSpec]


def find_ledger_tasks(
    entries: Iterable[LedgerTransaction] | None,
    topology: Topology,
    persist_frame: KeepFrame,
    plan_topic_read: PlanTopicRead,
) -> dict[int, LedgerTasks]:
    """Find the ledger's order of records for the tasks of each sub-topology.

    `entries`: None if there is no ledger.
    """
    if entries is None:
        orders: Mapping[int, LedgerOrder] = {}
        why = "with ledger=True the order of the records and the commits are known"
    else:
        orders = collect_ledger_orders(entries, topology)
        why = "an earlier version of the application, with other sub-topologies, wrote the ledger"
    tables = {table.store.name: table for table in topology.global_tables}
    return {
        sub.number: LedgerTasks(orders.get(sub.number), why, persist_frame, plan_topic_read, tables)
        for sub in topology.subtopologies
    }


@dataclass(frozen=True, slots=True)
class LedgerCandidate:
    """Represents a store, or a topic, that only the order of the ledger may determine.

    `nodes` write it; `flow` says why its inputs alone don't determine it.
    """

    name: str
    nodes: Sequence[Node]
    flow: StepDeterminism
    store: StoreSpec | None = None

    @property
    def target(self) -> str:
        """Return the target of its rows in a replay."""
        return self.name if self.store is None else STORE_PREFIX + self.name


class LedgerReplay:
    """Replays the steps of a sub-topology in the order of the ledger.

    `records`: of those source topics whose records are there, with their offsets.
    """

    def __init__(
        self,
        subtopology: Subtopology,
        records: Mapping[str, DataFrame],
        handlers: ExceptionHandlers,
        partition_counts: Mapping[str, int],
        tasks: LedgerTasks | None,
    ) -> None:
        self._subtopology = subtopology
        self._records = records
        self._handlers = handlers
        self._partition_counts = partition_counts
        self._tasks = tasks
        self._global_tables: dict[str, GlobalTableSource | UserError] = {}
        """By store; an error where the table's topic can't be read, found once for all."""
        self._analysis = DeterminismAnalysis(subtopology)
        self._flows_by_name = {
            node.name: self._analysis.find_step_determinism(node) for node in subtopology.nodes
        }

    def run_candidates(
        self, candidates: Sequence[LedgerCandidate]
    ) -> tuple[list[ReplayedCandidate], list[RefusedCandidate]]:
        """Replay what determines the candidates; return their rows, and the refusals of the rest.

        The replay is run at once: several accounts come of its rows.
        """
        refused: list[tuple[LedgerCandidate, StepDeterminism]] = []
        able: list[LedgerCandidate] = []
        for candidate in candidates:
            obstacle = self._find_replay_obstacle(candidate)
            if obstacle is None:
                able.append(candidate)
            else:
                refused.append((candidate, obstacle))
        tasks = self._tasks
        if not able or tasks is None or tasks.order is None:
            return [], refused
        try:
            work = self._create_replay_work(able)
            rows = replay_in_ledger_order(self._read_all_topics(), work, tasks.order)
            rows = tasks.persist_frame(rows.persist(StorageLevel.MEMORY_AND_DISK))
            rows.count()
        except (UserError, PySparkException, Py4JJavaError) as error:
            why = error if isinstance(error, UserError) else to_user_error(error)
            if isinstance(why, (AuthenticationError, AuthorizationError)):
                raise why from error
            return [], [
                *refused,
                *((each, _append_ledger_reason(each.flow, str(why))) for each in able),
            ]
        return [(each, rows.where(f.col("target") == each.target)) for each in able], refused

    def _find_replay_obstacle(self, candidate: LedgerCandidate) -> StepDeterminism | None:
        """Find why a candidate can't be replayed; return None if nothing is in the way.

        Raises AuthenticationError and AuthorizationError, which no candidate alone is refused for.
        """
        flow = candidate.flow
        if self._tasks is None:
            return flow
        for node in self._extract_steps([candidate]).nodes:
            if isinstance(node, ProcessorNode) and _depends_on_wall_clock(node):
                return self._flows_by_name[node.name]  # steps are copied
        if self._tasks.order is None:
            return _append_ledger_reason(flow, self._tasks.why)
        if gone := self._subtopology.sources.keys() - self._records.keys():
            return _append_ledger_reason(
                flow,
                f"the ledger tells the order of the records, but those of {sorted(gone)} were "
                "deleted when they had been processed (repartition_purge_interval_ms)",
            )
        try:
            work = self._create_replay_work([candidate])
            run_steps_without_records(work)
            pickle_for_executors(work)
        except (AuthenticationError, AuthorizationError):
            raise
        except UserError as error:
            return _append_ledger_reason(flow, str(error))
        return None

    def _create_replay_work(self, candidates: Iterable[LedgerCandidate]) -> ReplayWork:
        """Create the replay work for the steps and stores that lead to the candidates."""
        candidates = list(candidates)
        steps = self._extract_steps(candidates)
        # All of the task's records advance its time.
        others = [
            source
            for topic, source in self._subtopology.sources.items()
            if topic not in steps.sources
        ]
        return ReplayWork(
            replace(steps, nodes=(*others, *steps.nodes)),
            self._handlers,
            tuple(each.store.name for each in candidates if each.store is not None),
            self._partition_counts,
            self._plan_global_tables(steps),
        )

    def _plan_global_tables(self, steps: Subtopology) -> dict[str, GlobalTableSource]:
        """Plan the reads of the global tables that steps join with. Raises UserError."""
        steps_by_store: dict[str, list[str]] = {}
        for node in self._subtopology.nodes:  # all of them, so that each topic is read once
            if (store := _find_global_store(node)) is not None:
                steps_by_store.setdefault(store, []).append(node.name)
        wanted = {store for node in steps.nodes if (store := _find_global_store(node)) is not None}
        planned: dict[str, GlobalTableSource] = {}
        for store in sorted(wanted):
            if store not in self._global_tables:
                self._global_tables[store] = self._plan_global_table(store, steps_by_store[store])
            found = self._global_tables[store]
            if isinstance(found, UserError):
                raise found
            planned[store] = found
        return planned

    def _plan_global_table(
        self, store: str, steps: Collection[str]
    ) -> GlobalTableSource | UserError:
        """Plan the read of the global table in which `steps` look rows up.

        Returns the error if it can't be read: the next candidate does not wait for it again.
        """
        assert self._tasks is not None
        assert self._tasks.order is not None
        table = self._tasks.global_tables[store]
        try:
            ends, hashes = find_ends_seen_by_steps(self._tasks.order, steps)
            return GlobalTableSource(table, self._tasks.plan_topic_read(table.topic, ends, hashes))
        except UserError as error:
            return error

    def _extract_steps(self, candidates: Iterable[LedgerCandidate]) -> Subtopology:
        """Extract the steps whose results the candidates are, and those that write their stores."""
        specs = {spec.name: spec for spec in self._subtopology.stores}
        targets: set[Node] = {node for each in candidates for node in each.nodes}
        while True:
            upstream = set().union(*map(find_ancestors, targets))
            read = {
                name for node in upstream if isinstance(node, ProcessorNode) for name in node.stores
            }
            writers = {
                writer for name in read for writer in self._analysis.find_store_writers(specs[name])
            }
            named = {
                child
                for child in self._subtopology.nodes
                for parent in child.parents
                if parent in upstream
                and isinstance(parent, ProcessorNode)
                and parent.traits.names_children
            }
            if writers | named <= upstream:
                return extract_steps(self._subtopology, targets)
            targets |= writers | named

    def _read_all_topics(self) -> DataFrame:
        """Return the records of all source topics of the sub-topology."""
        topics = sorted(self._subtopology.sources)
        return reduce(DataFrame.unionByName, (self._records[topic] for topic in topics))


def _find_global_store(node: Node) -> str | None:
    """Return the store of the global table in which a step looks rows up, or None if none."""
    return node.traits.looks_up_global_store if isinstance(node, ProcessorNode) else None


def _depends_on_wall_clock(node: ProcessorNode) -> bool:
    """Return whether a step depends on what the ledger does not tell: the wall clock."""
    return isinstance(node.rule, StreamJoinRule) and node.rule.emit_interval_ms is not None


def _append_ledger_reason(flow: StepDeterminism, reason: str) -> StepDeterminism:
    """Add to why a flow can't be derived the reason why the ledger does not help."""
    return replace(flow, reason=f"{flow.reason}; {reason}")
