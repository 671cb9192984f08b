"""List the stores and topics that can be reconciled, and read their rows as of a cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from state.keys import TIME_MAX
from streams.errors import ConfigError
from streams.serdes import Serde
from streams.spark.books.accounts import Kind
from streams.spark.books.inputs import FORMAT, Records, connection
from streams.spark.books.ledgers import Written
from streams.spark.cuts.cut import Cut
from streams.spark.stores.store_options import layout_of
from streams.topology.build import Subtopology, Topology
from streams.topology.nodes import Node, ProcessorNode, SinkNode, StoreKind, StoreSpec
from streams.topology.rules import AggregationRule

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from streams.spark.source.access import Access

_TIME_BYTES = 8
_KEYS = ("windowed", "window_size_ms")
"""The options that say how keys are taken apart."""
_ROW = ("key", "window_start", "window_end", "value", "timestamp", "topic", "partition", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Represents a store, or a topic that the application writes, that can be reconciled.

    `key_serde`: of the key itself, without its window. `windowed`: `time` or `session`;
    `window_size_ms` of `time`, None without an end. `keys_span_partitions`, of a topic: a key may
    be in several partitions, by the step's own partitioner. `store`, of a topic: the store whose
    rows it has, one record for each update; `values_never_repeat`: and each update is another
    value.
    """

    name: str
    kind: Kind
    subtopology: int
    key: Serde[Any]
    value: Serde[Any]
    windowed: str | None = None
    window_size_ms: int | None = None
    spec: StoreSpec | None = None
    store: str | None = None
    grows: bool = False
    internal: bool = False
    scattered: bool = False


@dataclass(frozen=True, slots=True)
class OpaqueAccount:
    """Represents an account that can't be compared with anything.

    It is a store without a changelog, or that holds records back; or, by its name, a step that
    chooses the topic of each record.
    """

    name: str
    kind: Kind
    subtopology: int


def opaque_accounts(topology: Topology) -> list[OpaqueAccount]:
    """List the accounts of an application that can't be compared with anything."""
    accounts = {}
    for sub in topology.subtopologies:
        for spec in sub.stores:
            if not spec.logged or spec.kind is StoreKind.BUFFER:
                accounts[spec.name] = OpaqueAccount(spec.name, Kind.STORE, sub.number)
        for sink in sub.sinks:
            if not isinstance(sink.topic, str):
                accounts[sink.name] = OpaqueAccount(sink.name, Kind.STREAM, sub.number)
    return list(accounts.values())


def places(topology: Topology) -> list[Place]:
    """List the stores that are restored from a topic, and the written topics with a fixed name."""
    all_targets = [place for sub in topology.subtopologies for place in _of(sub)]
    by_key: dict[tuple[bool, str], Place] = {}
    for place in all_targets:
        by_key.setdefault((place.kind is Kind.STORE, place.name), place)
    return list(by_key.values())


def _of(sub: Subtopology) -> Iterator[Place]:
    """Yield the stores and topics of a sub-topology that can be reconciled."""
    for spec in sub.stores:
        if spec.logged and spec.kind is not StoreKind.BUFFER:
            windowed = {StoreKind.WINDOW: "time", StoreKind.SESSION: "session"}.get(spec.kind)
            yield Place(
                name=spec.name,
                kind=Kind.STORE,
                subtopology=sub.number,
                key=spec.key,
                value=spec.value,
                windowed=windowed,
                window_size_ms=spec.window_size_ms,
                spec=spec,
            )
    for sink in sub.sinks:
        if isinstance(sink.topic, str):
            yield _of_topic(sub, sink, sink.topic)


def _of_topic(sub: Subtopology, sink: SinkNode, topic: str) -> Place:
    """Describe a written topic: its windows, and the table whose rows it has."""
    inner = sink.key.inner
    windowed, size = None, None
    if inner is not None:
        kind, _, rest = sink.key.name.partition("(")
        windowed = "session" if kind == "session_windowed" else "time"
        last = rest.rpartition(", ")[2].rstrip(")")
        size = int(last) if last.isdigit() else None
    table = _table_above(sink)
    is_table = any(isinstance(n, ProcessorNode) and n.emits_updates for n in _above(sink))
    return Place(
        name=topic,
        kind=Kind.UPSERTS if is_table and not sink.internal else Kind.STREAM,
        subtopology=sub.number,
        key=sink.key if inner is None else inner,
        value=sink.value,
        windowed=windowed,
        window_size_ms=size,
        store=table.stores[0] if table is not None and table.stores else None,
        grows=table is not None and _counts_up(table),
        internal=sink.internal,
        scattered=sink.partitioner is not None,
    )


def _counts_up(table: ProcessorNode) -> bool:
    """Whether each update of a table has another value, as that of a count of records has."""
    rule = table.rule
    return isinstance(rule, AggregationRule) and rule.folding.is_count and not rule.on_close


def _above(node: Node) -> Iterator[Node]:
    """Yield all steps before a node, each once."""
    left = list(node.parents)
    for each in left:  # the list grows while it is walked
        yield each
        left += [parent for parent in each.parents if parent not in left]


def _table_above(sink: SinkNode) -> ProcessorNode | None:
    """Find the step whose table's rows a sink writes unchanged; None if there is none."""
    node: Node = sink
    while len(node.parents) == 1:
        (node,) = node.parents
        if not isinstance(node, ProcessorNode):
            return None
        if not node.only_forwards:
            return node if node.emits_updates and len(node.stores) == 1 else None
    return None


class Found:
    """Reads the rows that stores and topics have at `cut`."""

    def __init__(self, spark: SparkSession, access: Access, cut: Cut, records: Records) -> None:
        self._spark = spark
        self._access = access
        self._cut = cut
        self._records = records

    def rows(self, place: Place) -> DataFrame:
        """Read a target's rows, with the columns of ROW and FOUND.

        Raises: ConfigError if the cut doesn't say what was written, or some of it was removed.
        """
        if place.spec is None:
            rows = self._records.written(place.name, {}, self._cut)
            if lost := self._records.explain_removal(place.name, self._cut):
                raise ConfigError(f"{lost}: what was written and is not there can't be told apart")
            return in_windows(in_ms(rows), place)
        layout = layout_of(place.spec)
        if place.windowed is not None:
            del layout["retention_ms"]  # windows that should have expired are compared too
        return self._of_store(place, layout)

    def judged(self, place: Place, rows: DataFrame, ledger: Written) -> DataFrame | None:
        """Compare a target's records with the ledger; None for a store without an own changelog.

        `rows`: all records that are there. Of a store those of its changelog are read in their
        place.
        """
        if place.spec is None:
            begins = self._records.begins(place.name, self._cut).values()
            whole = not any(begins) and not self._records.is_compacted(place.name)
            return ledger.against(rows, place.name, whole=whole)
        if place.spec.source_topic is not None:
            return None
        layout = {k: v for k, v in layout_of(place.spec).items() if k in _KEYS}
        changes = self._of_store(place, {**layout, "content": "changelog"})
        return ledger.against(changes, self._cut.stores[place.name].changelog, whole=False)

    def _of_store(self, place: Place, layout: Mapping[str, str]) -> DataFrame:
        """Read a store by the data source, with the columns of ROW and FOUND."""
        store = self._cut.stores.get(place.name)
        if store is None:
            raise ConfigError(
                f"the cut says nothing of store {place.name!r}: it has "
                f"{', '.join(sorted(self._cut.stores)) or 'no stores'}"
            )
        frame = (
            self._spark.read.format(FORMAT)
            .options(**connection(self._access))
            .options(application_id=self._cut.application_id, cut=self._cut.to_json())
            .options(store=place.name, **layout)
            .load()
        )
        start, end = F.lit(None), F.lit(None)
        if place.windowed is not None:
            start, end = F.unix_millis("window_start"), F.unix_millis("window_end")
        if place.windowed == "time":  # Spark has no time for the end of an unlimited window
            end = _end(start, place.window_size_ms)
        windows = {"window_start": start, "window_end": end}
        windows = {name: column.cast("BIGINT") for name, column in windows.items()}
        frame = in_ms(frame).withColumns(windows).withColumn("topic", F.lit(store.changelog))
        return frame.select(*_ROW)


def in_ms(frame: DataFrame) -> DataFrame:
    """Convert the column `timestamp` to ms since 1970."""
    return frame.withColumn("timestamp", F.unix_millis("timestamp"))


def in_windows(frame: DataFrame, place: Place) -> DataFrame:
    """Split the keys of a topic into key, window start and window end, null without windows."""
    key, start, end = F.col("key"), F.lit(None).cast("BIGINT"), F.lit(None).cast("BIGINT")
    length = F.octet_length("key")
    if place.windowed == "time":
        start = _number(key, length - _TIME_BYTES)
        end = _end(start, place.window_size_ms)
        key = F.substring(key, F.lit(1), length - _TIME_BYTES)
    elif place.windowed == "session":
        end = _number(key, length - 2 * _TIME_BYTES)
        start = _number(key, length - _TIME_BYTES)
        key = F.substring(key, F.lit(1), length - 2 * _TIME_BYTES)
    columns = {"key": key, "window_start": start, "window_end": end}
    return frame.select(
        *(column.alias(name) for name, column in columns.items()),
        *(name for name in _ROW if name not in columns),
    )


def _end(start: Column, size_ms: int | None) -> Column:
    """Compute the end of windows of a size; None stands for windows without an end."""
    if size_ms is None or size_ms == TIME_MAX:
        return F.lit(TIME_MAX).cast("BIGINT")
    return start + F.lit(size_ms)


def _number(data: Column, at: Column) -> Column:
    """Decode the eight bytes behind the first `byte_offset` bytes as a big-endian integer."""
    return F.conv(F.hex(F.substring(data, at + 1, F.lit(_TIME_BYTES))), 16, -10).cast("BIGINT")


def chosen(all_places: Iterable[Place], names: Iterable[str]) -> list[Place]:
    """Select the targets with these names. Raises ConfigError for a name that no target has."""
    all_targets = list(all_places)
    selected = []
    for name in names:
        matching = [place for place in all_targets if place.name == name]
        if not matching:
            raise ConfigError(
                f"the application has no store and writes no topic {name!r}; there are "
                f"{', '.join(sorted({place.name for place in all_targets})) or 'none'}"
            )
        selected += matching
    return selected
