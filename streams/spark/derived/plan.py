"""The plan of one sub-topology: how what each of its stores and topics holds is found out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from streams.dsl.windowed import windowed_key
from streams.errors import UserError
from streams.handling import Handlers
from streams.spark.accounts import Account, Kind
from streams.spark.derived.arrow import map_in_arrow
from streams.spark.derived.computing import (
    Computed,
    big_endian,
    computed,
    expired,
    is_computable,
    takes_values,
)
from streams.spark.derived.flows import (
    Determined,
    Flow,
    Flows,
    above,
    is_one_by_one,
    not_compared,
    topics_above,
)
from streams.spark.derived.pieces import piece, sinks_by_topic, source_of
from streams.spark.derived.replay import STORED, TAPPED, Each, InOrder, ReplayedTask, Work, tap
from streams.spark.derived.rows import MADE_DDL, READ
from streams.spark.derived.shipping import shipped
from streams.topology.build import Subtopology
from streams.topology.nodes import (
    Node,
    Operator,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StoreKind,
    StoreSpec,
)
from streams.topology.rules import Aggregated, HeldBack

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


@dataclass(frozen=True, slots=True)
class Read:
    """The records of a source topic, with the columns of READ. `ordered`: with their offsets."""

    frame: DataFrame
    ordered: bool = True


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
        self._compacted = frozenset(compacted)
        self._sub = subtopology
        self._reads = reads
        self._handlers = handlers
        self._partitions = partitions
        self._specs = {spec.name: spec for spec in subtopology.stores}
        self._failed: dict[Node, str] = {}
        self._computed = self._computing()
        self._rows = self._known_rows()
        shuffled = [topic for topic, read in reads.items() if not read.ordered]
        self._flows = Flows(subtopology, self._computed, shuffled, self._compacted)

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
        if not others and first in self._computed:
            self._computed_store(self._computed[first])
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
            origins = frame.where(f.col("topic").isNotNull())
            self._account(topic, Kind.STREAM, how, frame, _origin(origins))
            return
        frame = _last(frame)
        [sink] = sinks
        self._account(topic, Kind.UPSERTS, how, frame, self._inputs([sink]))

    def _computing(self) -> dict[Node, Computed]:
        """The steps whose tables Spark computes."""
        found: dict[Node, Computed] = {}
        users = [n for n in self._sub.nodes if isinstance(n, ProcessorNode)]
        for node in users:
            if not isinstance(node.rule, Aggregated) or len(node.stores) != 1:
                continue
            spec = self._specs[node.stores[0]]
            alone = not any(n is not node and n.rule and spec.name in n.stores for n in users)
            stateless = all(map(is_one_by_one, node.parents))
            whole = not self._compacted & topics_above([node])
            if alone and stateless and whole and is_computable(node, spec):
                try:
                    table = self._compute(node, node.rule, spec)
                except UserError as error:
                    table = str(error)
                if isinstance(table, Computed):
                    found[node] = table
                else:
                    self._failed[node] = table
        return found

    def _compute(self, node: ProcessorNode, rule: Aggregated, spec: StoreSpec) -> Computed | str:
        values = takes_values(rule)
        operator = tap(node.name, spec.key.serialize, values=values)
        work = self._work([node], instead={node: operator})
        records = self._each(work, self._records([node])).where(
            f.col("target") == TAPPED + node.name
        )
        topics = topics_above([node])
        in_order = len(topics) == 1 and all(self._reads[t].ordered for t in topics)
        if not all(self._reads[t].ordered for t in topics):
            records = records.withColumn("offset", f.lit(-1).cast("long"))
        return computed(node, spec, records, in_order=in_order)

    def _known_rows(self) -> dict[Node, DataFrame]:
        """Of the tables that Spark computes the rows that are passed on at last."""
        found: dict[Node, DataFrame] = {}
        for node, table in self._computed.items():
            found[node] = table.closed if table.rule.on_close else table.rows
            for child in self._sub.nodes:
                held = child.rule if isinstance(child, ProcessorNode) else None
                if node in child.parents and isinstance(held, HeldBack) and held.final:
                    found[child] = table.closed
        return found

    def _computed_store(self, table: Computed) -> None:
        origins = table.records.where(f.col("topic").isNotNull())
        self._account(
            table.spec.name,
            Kind.STORE,
            COMPUTED,
            table.rows,
            _origin(origins),
            gone=table.expired,
            times=True,
        )

    def _flow(self, nodes: Iterable[Node], flow: Flow) -> Flow:
        """`flow`, unless before these steps is what Spark could not compute, and nobody can."""
        before = set().union(*map(above, nodes))
        for node, why in self._failed.items():
            if node in before and not self._in_order(before):
                return Flow(Determined.UNKNOWN, node.name, why)
        return flow

    def _in_order(self, nodes: Iterable[Node]) -> bool:
        topics = {node.topic for node in nodes if isinstance(node, SourceNode)}
        return len(topics) == 1 and all(self._reads[topic].ordered for topic in topics)

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
        before = set().union(*(above(node, self._rows) for node in nodes))
        tables = [node for node in before if node in self._rows]
        if tables and not any(isinstance(node, SourceNode) for node in before):
            return self._after(nodes, tables, stores), COMPUTED
        if not stores and all(map(is_one_by_one, nodes)):
            return self._each(self._work(nodes), self._records(nodes)), ONE_BY_ONE
        work = self._work(nodes, stores)
        _dry_run(work)
        ordered = (
            self._records(nodes)
            .repartition("partition")
            .sortWithinPartitions("partition", "topic", "offset")
        )
        return map_in_arrow(ordered, InOrder(shipped(work)), MADE_DDL), IN_ORDER

    def _after(self, nodes: list[Node], tables: list[Node], stores: tuple[str, ...]) -> DataFrame:
        """What comes of the rows of computed tables."""
        given: dict[Node, SourceNode] = {}
        rows: list[DataFrame] = []
        for table in tables:
            origin = table if table in self._computed else table.parents[0]
            known = self._computed[origin]
            spec, windows = known.spec, known.rule.windows
            key = spec.key if windows is None else windowed_key(spec.key, windows)
            topic = TAPPED + table.name
            given[table] = source_of(table, topic, key, spec.value)
            rows.append(_as_read(self._rows[table], topic, windowed=windows is not None))
        work = self._work(nodes, stores, given=given)
        return self._each(work, reduce(DataFrame.unionByName, rows))

    def _work(
        self,
        nodes: Iterable[Node],
        stores: tuple[str, ...] = (),
        *,
        instead: Mapping[Node, Operator] | None = None,
        given: Mapping[Node, SourceNode] | None = None,
    ) -> Work:
        cut = piece(self._sub, nodes, instead=instead, given=given)
        return Work(cut, self._handlers, stores, self._partitions)

    def _each(self, work: Work, records: DataFrame) -> DataFrame:
        return map_in_arrow(records, Each(shipped(work)), MADE_DDL)

    def _records(self, nodes: Iterable[Node]) -> DataFrame:
        topics = sorted(topics_above(nodes))
        return reduce(DataFrame.unionByName, (self._reads[topic].frame for topic in topics))

    def _inputs(self, nodes: Iterable[Node]) -> DataFrame | None:
        """The records with the keys of a table, where it has the keys of its topics."""
        topics = topics_above(nodes)
        if not all(self._reads[topic].ordered for topic in topics):
            return None
        return _origin(self._records(nodes))

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


def _as_read(rows: DataFrame, topic: str, *, windowed: bool) -> DataFrame:
    """A table's rows as records of a topic."""
    key = f.concat("key", big_endian(f.col("window_start"))) if windowed else f.col("key")
    return rows.select(
        key.alias("key"),
        "value",
        f.lit(topic).alias("topic"),
        f.col("partition").cast("int").alias("partition"),
        f.lit(0).cast("long").alias("offset"),
        "timestamp",
    ).select(*READ.names)


def _last(frame: DataFrame) -> DataFrame:
    """The last row of each key; none where that is a deletion."""
    row = f.struct("value", "timestamp")
    last = frame.groupBy("key").agg(f.max_by(row, f.col("number")).alias("last"))
    null = f.lit(None).cast("long")
    return last.where(f.col("last.value").isNotNull()).select(
        "key",
        null.alias("window_start"),
        null.alias("window_end"),
        f.col("last.value").alias("value"),
        f.col("last.timestamp").alias("timestamp"),
    )


def _origin(frame: DataFrame) -> DataFrame:
    return frame.select("key", "topic", "partition", "offset")


def _names(nodes: Iterable[Node]) -> str:
    return ", ".join(node.name for node in nodes)
