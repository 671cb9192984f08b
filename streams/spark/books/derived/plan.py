"""Plan for each store and topic of one sub-topology how its expected rows are computed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from streams.errors import UserError
from streams.exception_handlers import ExceptionHandlers
from streams.spark.books.accounts import Account, Kind
from streams.spark.books.derived.arrow import map_in_arrow
from streams.spark.books.derived.computing import Computed, expired
from streams.spark.books.derived.flows import (
    Determined,
    Flow,
    Flows,
    above,
    is_one_by_one,
    not_compared,
    topics_above,
)
from streams.spark.books.derived.frames import last_rows, origins
from streams.spark.books.derived.known import Known, Read
from streams.spark.books.derived.pieces import sinks_by_topic
from streams.spark.books.derived.replay import (
    STORED,
    InOrder,
    ReplayedTask,
    Work,
)
from streams.spark.books.derived.rows import MADE_DDL
from streams.spark.books.derived.shipping import shipped
from streams.topology.build import Subtopology
from streams.topology.nodes import (
    Node,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StoreKind,
    StoreSpec,
)

COMPUTED = "computed by Spark"
ONE_BY_ONE = "record by record, by the application's functions"
IN_ORDER = "replayed in the order of the offsets, by the application's own steps"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Represents something that is not checked, with the reason.

    `step`: the step, store or topic that is the reason.
    """

    step: str
    subtopology: int
    why: str

    def __str__(self) -> str:
        """Return the refusal as one line of text."""
        return f"sub-topology {self.subtopology}, {self.step}: {self.why}"


@dataclass(slots=True)
class Found:
    """Collects the accounts of a sub-topology, and what was refused.

    `written_records`: its records for each topic, with the columns of MADE, if each of them is
    determined.
    """

    accounts: list[Account] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    written: dict[str, DataFrame] = field(default_factory=dict)


def planned(
    subtopology: Subtopology,
    reads: Mapping[str, Read],
    handlers: ExceptionHandlers,
    partitions: Mapping[str, int],
    compacted: Collection[str] = (),
) -> Found:
    """Plan the accounts of a sub-topology from the records of its source topics.

    `partition_counts`: of the topics of which it matters where records go. Of `compacted_topics`
    only the last record of a key is known.
    """
    plan = _Plan(subtopology, reads, handlers, partitions, compacted)
    for spec in subtopology.stores:
        plan.store(spec)
    for node in subtopology.nodes:
        if isinstance(node, SinkNode) and not isinstance(node.topic, str):
            plan.refuse(node.name, f"which topic a record goes to is {node.topic_name}")
    for topic, sinks in sinks_by_topic(subtopology.nodes).items():
        plan.topic(topic, sinks)
    return plan.found


class _Plan:
    """Plans the accounts of one sub-topology; `result` collects them."""

    def __init__(
        self,
        subtopology: Subtopology,
        reads: Mapping[str, Read],
        handlers: ExceptionHandlers,
        partitions: Mapping[str, int],
        compacted: Collection[str],
    ) -> None:
        self.found = Found()
        self._sub = subtopology
        self._reads = reads
        self._known = Known(subtopology, reads, handlers, partitions, frozenset(compacted))
        shuffled = [topic for topic, read in reads.items() if not read.ordered]
        self._flows = Flows(subtopology, self._known.tables, shuffled, compacted, self._known.joins)

    def refuse(self, step: str, why: str) -> None:
        """Add a refusal with its reason, unless it is there already."""
        refusal = Refusal(step, self._sub.number, why)
        if refusal not in self.found.refused:
            self.found.refused.append(refusal)

    def store(self, spec: StoreSpec) -> None:
        """Add the account of a store, or the refusal that says why there is none."""
        if spec.source_topic is not None:
            return  # its rows are those of that topic
        if why := not_compared(spec):
            self.refuse(spec.name, why)
            return
        writers = self._flows.writers(spec)
        [first, *others] = writers
        if not others and first in self._known.tables:
            self._computed_store(self._known.tables[first])
            return
        flow = self._flow(writers, self._flows.of_store(spec))
        if flow.determined is Determined.UNKNOWN:
            self.refuse(flow.step, flow.why)
            return
        target = STORED + spec.name
        computed = self._made(spec.name, target, writers, spec)
        if computed is None:
            return
        frame, how = computed
        expired_rows = None
        if spec.retention_ms is not None:
            time = "window_end" if spec.kind is StoreKind.SESSION else "window_start"
            expired_rows = expired(frame, time, spec.retention_ms)
        self._account(spec.name, Kind.STORE, how, frame, self._inputs(writers), gone=expired_rows)

    def topic(self, topic: str, sinks: list[SinkNode]) -> None:
        """Add the account of a written topic, or the refusal that says why there is none."""
        flow = self._flow(sinks, min(map(self._flows.of, sinks), key=lambda each: each.determined))
        if flow.determined is Determined.UNKNOWN:
            self.refuse(flow.step, flow.why)
            return
        if flow.determined is Determined.LAST and len(sinks) > 1:
            self.refuse(topic, f"{len(sinks)} steps write to it, of tables: {_names(sinks)}")
            return
        computed = self._made(topic, topic, sinks)
        if computed is None:
            return
        frame, how = computed
        if flow.determined is Determined.EACH:
            self.found.written[topic] = frame
            self._account(topic, Kind.STREAM, how, frame, origins(frame))
            return
        frame = last_rows(frame)
        [sink] = sinks
        self._account(topic, Kind.UPSERTS, how, frame, self._inputs([sink]))

    def _computed_store(self, table: Computed) -> None:
        """Add the account of a store whose table Spark has computed."""
        self._account(
            table.spec.name,
            Kind.STORE,
            COMPUTED,
            table.rows,
            origins(table.records),
            gone=table.expired,
            times=True,
        )

    def _flow(self, nodes: Iterable[Node], flow: Flow) -> Flow:
        """Return UNKNOWN if Spark failed on a step before these and order is lost, or `flow`."""
        ancestors = set().union(*map(above, nodes))
        for node, (step, why) in self._known.failed.items():
            if node in ancestors and not self._known.in_order(ancestors):
                return Flow(Determined.UNKNOWN, step, why)
        return flow

    def _made(
        self,
        name: str,
        target: str,
        nodes: list[ProcessorNode] | list[SinkNode],
        spec: StoreSpec | None = None,
    ) -> tuple[DataFrame, str] | None:
        """Compute the rows of MADE for a target, and say how; None if that was refused."""
        stores = () if spec is None else (spec.name,)
        frames: list[DataFrame] = []
        how = ONE_BY_ONE
        try:
            for node in nodes if spec is None else nodes[:1]:
                group: list[Node] = [node] if spec is None else list(nodes)
                frame, how = self._frame(group, stores)
                frames.append(frame.where(f.col("target") == target))
        except UserError as error:
            self.refuse(name, str(error))
            return None
        return reduce(DataFrame.unionByName, frames), how

    def _frame(self, nodes: list[Node], stores: tuple[str, ...]) -> tuple[DataFrame, str]:
        """Run the steps before `nodes` by the simplest way there is, and name that way."""
        computable = self._known
        ancestors = set().union(
            *(above(node, {*computable.rows, *computable.joins}) for node in nodes)
        )
        tables = [node for node in ancestors if node in computable.rows]
        others = any(isinstance(node, SourceNode) or node in computable.joins for node in ancestors)
        if tables and not others:
            return computable.after(nodes, tables, stores), COMPUTED
        if not stores and all(is_one_by_one(node, computable.joins) for node in nodes):
            how = COMPUTED if ancestors & computable.joins.keys() else ONE_BY_ONE
            return computable.each(computable.work(nodes), nodes), how
        work = computable.work(nodes, stores)
        _dry_run(work)
        ordered = (
            self._records(nodes)
            .repartition("partition")
            .sortWithinPartitions("partition", "topic", "offset")
        )
        return map_in_arrow(ordered, InOrder(shipped(work)), MADE_DDL), IN_ORDER

    def _inputs(self, nodes: Iterable[Node]) -> DataFrame | None:
        """Find the records with the keys of a table, if it has the keys of its topics."""
        topics = topics_above(nodes)
        if not all(self._reads[topic].ordered for topic in topics):
            return None
        return origins(self._records(nodes))

    def _records(self, nodes: Iterable[Node]) -> DataFrame:
        """Return the records of all source topics of these steps."""
        topics = sorted(topics_above(nodes))
        return reduce(DataFrame.unionByName, (self._reads[topic].frame for topic in topics))

    def _account(
        self,
        name: str,
        kind: Kind,
        how: str,
        rows: DataFrame,
        origins: DataFrame | None,
        *,
        gone: DataFrame | None = None,
        times: bool | None = None,
    ) -> None:
        """Add an account to the result."""
        account = Account(
            name=name,
            kind=kind,
            subtopology=self._sub.number,
            how=how,
            expected=rows.select("key", "window_start", "window_end", "value", "timestamp"),
            origins=origins,
            times=kind is Kind.STREAM if times is None else times,
        )
        self.found.accounts.append(account if gone is None else replace(account, expired=gone))


def _dry_run(work: Work) -> None:
    """Bind the steps on the driver, which can report what they refuse. Raises UserError."""
    try:
        ReplayedTask(work, partition=0).finish()
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"its steps can't be run by themselves: {error!r}") from error


def _names(nodes: Iterable[Node]) -> str:
    """Join the names of nodes."""
    return ", ".join(node.name for node in nodes)
