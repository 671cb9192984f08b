"""The plan of one sub-topology: how what each of its stores and topics holds is found out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from streams.errors import UserError
from streams.handling import Handlers
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
    """What is not checked. `step`: the step, store or topic that is the reason."""

    step: str
    subtopology: int
    why: str

    def __str__(self) -> str:
        return f"sub-topology {self.subtopology}, {self.step}: {self.why}"


@dataclass(slots=True)
class Found:
    """What came of a sub-topology. `written`: its records for each topic, those of MADE, where each
    of them is determined."""

    accounts: list[Account] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    written: dict[str, DataFrame] = field(default_factory=dict)


def planned(
    subtopology: Subtopology,
    reads: Mapping[str, Read],
    handlers: Handlers,
    partitions: Mapping[str, int],
    compacted: Collection[str] = (),
) -> Found:
    """The accounts of a sub-topology from its source topics. `partitions`: of the topics of which
    it matters where records go. Of `compacted` topics only the last record of a key is known."""
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
    def __init__(
        self,
        subtopology: Subtopology,
        reads: Mapping[str, Read],
        handlers: Handlers,
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
        refusal = Refusal(step, self._sub.number, why)
        if refusal not in self.found.refused:
            self.found.refused.append(refusal)

    def store(self, spec: StoreSpec) -> None:
        """The account of a store, or why there is none."""
        if spec.source_topic is not None:
            return  # it is that topic
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
        made = self._made(spec.name, target, writers, spec)
        if made is None:
            return
        frame, how = made
        gone = None
        if spec.retention_ms is not None:
            time = "window_end" if spec.kind is StoreKind.SESSION else "window_start"
            gone = expired(frame, time, spec.retention_ms)
        self._account(spec.name, Kind.STORE, how, frame, self._inputs(writers), gone=gone)

    def topic(self, topic: str, sinks: list[SinkNode]) -> None:
        """The account of a topic that is written, or why there is none."""
        flow = self._flow(sinks, min(map(self._flows.of, sinks), key=lambda each: each.determined))
        if flow.determined is Determined.UNKNOWN:
            self.refuse(flow.step, flow.why)
            return
        if flow.determined is Determined.LAST and len(sinks) > 1:
            self.refuse(topic, f"{len(sinks)} steps write to it, of tables: {_names(sinks)}")
            return
        made = self._made(topic, topic, sinks)
        if made is None:
            return
        frame, how = made
        if flow.determined is Determined.EACH:
            self.found.written[topic] = frame
            self._account(topic, Kind.STREAM, how, frame, origins(frame))
            return
        frame = last_rows(frame)
        [sink] = sinks
        self._account(topic, Kind.UPSERTS, how, frame, self._inputs([sink]))

    def _computed_store(self, table: Computed) -> None:
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
        """`flow`, unless before these steps is what Spark could not compute, and nobody can."""
        before = set().union(*map(above, nodes))
        for node, (step, why) in self._known.failed.items():
            if node in before and not self._known.in_order(before):
                return Flow(Determined.UNKNOWN, step, why)
        return flow

    def _made(
        self,
        name: str,
        target: str,
        nodes: list[ProcessorNode] | list[SinkNode],
        spec: StoreSpec | None = None,
    ) -> tuple[DataFrame, str] | None:
        """The rows of MADE for a target, and how they were found; None if that was refused."""
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
        known = self._known
        before = set().union(*(above(node, {*known.rows, *known.joins}) for node in nodes))
        tables = [node for node in before if node in known.rows]
        others = any(isinstance(node, SourceNode) or node in known.joins for node in before)
        if tables and not others:
            return known.after(nodes, tables, stores), COMPUTED
        if not stores and all(is_one_by_one(node, known.joins) for node in nodes):
            how = COMPUTED if before & known.joins.keys() else ONE_BY_ONE
            return known.each(known.work(nodes), nodes), how
        work = known.work(nodes, stores)
        _dry_run(work)
        ordered = (
            self._records(nodes)
            .repartition("partition")
            .sortWithinPartitions("partition", "topic", "offset")
        )
        return map_in_arrow(ordered, InOrder(shipped(work)), MADE_DDL), IN_ORDER

    def _inputs(self, nodes: Iterable[Node]) -> DataFrame | None:
        """The records with the keys of a table, where it has the keys of its topics."""
        topics = topics_above(nodes)
        if not all(self._reads[topic].ordered for topic in topics):
            return None
        return origins(self._records(nodes))

    def _records(self, nodes: Iterable[Node]) -> DataFrame:
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
    """Bind the steps here, where what they refuse can be told. Raises UserError."""
    try:
        ReplayedTask(work, partition=0).finish()
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"its steps can't be run by themselves: {error!r}") from error


def _names(nodes: Iterable[Node]) -> str:
    return ", ".join(node.name for node in nodes)
