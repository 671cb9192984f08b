"""List the reconcilable stores and topics, and read their rows as of a consistent cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from state.keys import TIME_MAX
from streams.errors import ConfigError
from streams.graph.nodes import Node, ProcessorNode, SinkNode, StoreKind, StoreSpec
from streams.serdes import Serde
from streams.spark.reconciliation.accounts import KEY_COLUMNS, Account, AccountKind
from streams.spark.reconciliation.inputs import TIMES_AS_NUMBERS, TopicRecords
from streams.spark.reconciliation.ledger_check import LedgerRuns
from streams.spark.reconciliation.planned_reads import read_as_planned_here
from streams.spark.stores.store_options import build_layout_options, build_window_options
from streams.topology.build import Subtopology, Topology
from streams.topology.rules import AggregationRule

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TIME_BYTES = 8
_KEY_OPTIONS = ("windowed", "window_size_ms")
"""The options that say how keys are taken apart."""
_ROW_COLUMNS = (
    "key",
    "window_start",
    "window_end",
    "value",
    "timestamp",
    "topic",
    "partition",
    "offset",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciliationTarget:
    """Represents a store, or a topic that the application writes, that can be reconciled.

    `key_serde`: of the key itself, without its window. `windowed`: `time` or `session`;
    `window_size_ms` of `time`, None without an end. `keys_span_partitions`, of a topic: a key may
    be in several partitions, by the step's own partitioner. `store`, of a topic: the store whose
    rows it has, one record for each update; `values_never_repeat`: and each update is another
    value.
    """

    name: str
    kind: AccountKind
    subtopology: int
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    windowed: str | None = None
    window_size_ms: int | None = None
    spec: StoreSpec | None = None
    store: str | None = None
    values_never_repeat: bool = False
    is_internal: bool = False
    keys_span_partitions: bool = False


@dataclass(frozen=True, slots=True)
class OpaqueAccount:
    """Represents a store or step whose content can't be compared with anything.

    It is a store without a changelog, or that holds records back; or, by its name, a step that
    chooses the topic of each record.
    """

    name: str
    kind: AccountKind
    subtopology: int


def list_opaque_accounts(topology: Topology) -> list[OpaqueAccount]:
    """List the stores and steps of a topology whose content can't be compared with anything."""
    accounts = {}
    for sub in topology.subtopologies:
        for spec in sub.stores:
            if not spec.logged or spec.kind is StoreKind.BUFFER:
                accounts[spec.name] = OpaqueAccount(spec.name, AccountKind.STORE, sub.number)
        for sink in sub.sinks:
            if not isinstance(sink.topic, str):
                accounts[sink.name] = OpaqueAccount(sink.name, AccountKind.STREAM, sub.number)
    return list(accounts.values())


def reconcilable_targets(topology: Topology) -> list[ReconciliationTarget]:
    """List the stores that are restored from a topic, and the topics written under fixed names."""
    all_targets = [place for sub in topology.subtopologies for place in _list_targets(sub)]
    by_key: dict[tuple[bool, str], ReconciliationTarget] = {}
    for place in all_targets:
        by_key.setdefault((place.kind is AccountKind.STORE, place.name), place)
    return list(by_key.values())


def _list_targets(sub: Subtopology) -> Iterator[ReconciliationTarget]:
    """Yield the stores and topics of a sub-topology that can be reconciled."""
    for spec in sub.stores:
        if spec.logged and spec.kind is not StoreKind.BUFFER:
            windowed = {StoreKind.WINDOW: "time", StoreKind.SESSION: "session"}.get(spec.kind)
            yield ReconciliationTarget(
                name=spec.name,
                kind=AccountKind.STORE,
                subtopology=sub.number,
                key_serde=spec.key,
                value_serde=spec.value,
                windowed=windowed,
                window_size_ms=spec.window_size_ms,
                spec=spec,
            )
    for sink in sub.sinks:
        if isinstance(sink.topic, str):
            yield _describe_topic(sub, sink, sink.topic)


def _describe_topic(sub: Subtopology, sink: SinkNode, topic: str) -> ReconciliationTarget:
    """Describe a written topic as a target: its serdes, windows and the table that it mirrors."""
    inner = sink.key.inner
    windows = {} if inner is None else build_window_options(sink.key)
    size = windows.get("window_size_ms")
    table = _find_written_table(sink)
    is_table = any(
        isinstance(n, ProcessorNode) and n.emits_updates for n in _iterate_ancestors(sink)
    )
    return ReconciliationTarget(
        name=topic,
        kind=AccountKind.UPSERTS if is_table and not sink.internal else AccountKind.STREAM,
        subtopology=sub.number,
        key_serde=sink.key if inner is None else inner,
        value_serde=sink.value,
        windowed=windows.get("windowed"),
        window_size_ms=None if size is None else int(size),
        store=table.stores[0] if table is not None and table.stores else None,
        values_never_repeat=table is not None and _always_increments(table),
        is_internal=sink.internal,
        keys_span_partitions=sink.partitioner is not None,
    )


def _always_increments(table: ProcessorNode) -> bool:
    """Return whether each update of a table changes its value, as a count's does."""
    rule = table.rule
    return isinstance(rule, AggregationRule) and rule.folding.is_count and not rule.on_close


def _iterate_ancestors(node: Node) -> Iterator[Node]:
    """Yield each step upstream of a node once."""
    left = list(node.parents)
    for each in left:  # the list grows while it is walked
        yield each
        left += [parent for parent in each.parents if parent not in left]


def _find_written_table(sink: SinkNode) -> ProcessorNode | None:
    """Find the table whose rows a sink writes unchanged, or return None if it writes others."""
    node: Node = sink
    while len(node.parents) == 1:
        (node,) = node.parents
        if not isinstance(node, ProcessorNode):
            return None
        if not node.traits.only_forwards:
            return node if node.emits_updates and len(node.stores) == 1 else None
    return None


def read_actual_rows(target: ReconciliationTarget, records: TopicRecords) -> DataFrame:
    """Read the rows of a store or topic as of the cut, with the columns of ROW and FOUND.

    Raises: ConfigError if the cut doesn't say what was written, or some of it was removed.
    """
    if target.spec is None:
        rows = records.read_written_up_to_cut(target.name, plans_now=True)
        if lost := records.explain_removal(target.name):
            raise ConfigError(f"{lost}: what was written and is not there can't be told apart")
        return split_windowed_keys(rows, target)
    layout = build_layout_options(target.spec)
    if target.windowed is not None:
        del layout["retention_ms"]  # windows that should have expired are compared too
    return _read_store(target, records, layout)


def compare_with_ledger(
    target: ReconciliationTarget, rows: DataFrame, records: TopicRecords, ledger_runs: LedgerRuns
) -> DataFrame | None:
    """Compare a target's records with the ledger; None if a store has no changelog of its own.

    `rows`: all records that are there. Of a store those of its changelog are read in their place.
    """
    if target.spec is None:
        begins = records.fetch_earliest_offsets(target.name).values()
        whole = not any(begins) and not records.is_compacted(target.name)
        return ledger_runs.compare_records(rows, target.name, is_complete=whole)
    if target.spec.source_topic is not None:
        return None
    layout = {k: v for k, v in build_layout_options(target.spec).items() if k in _KEY_OPTIONS}
    changes = _read_store(target, records, {**layout, "content": "changelog"})
    changelog = records.cut.stores[target.name].changelog
    return ledger_runs.compare_records(changes, changelog, is_complete=False)


def _read_store(
    target: ReconciliationTarget, records: TopicRecords, layout: Mapping[str, str]
) -> DataFrame:
    """Read a store by the data source, with the columns of ROW and FOUND."""
    cut = records.cut
    store = cut.stores.get(target.name)
    if store is None:
        raise ConfigError(
            f"the cut says nothing of store {target.name!r}: it has "
            f"{', '.join(sorted(cut.stores)) or 'no stores'}"
        )
    options = {
        **records.access.to_options(),
        "application_id": cut.application_id,
        "cut": cut.to_json(),
        "store": target.name,
        **TIMES_AS_NUMBERS,
        **layout,
    }
    frame = read_as_planned_here(records.spark, options)
    start, end = F.lit(None), F.lit(None)
    if target.windowed is not None:
        start, end = F.col("window_start"), F.col("window_end")
    if target.windowed == "time":
        end = _compute_window_end(start, target.window_size_ms)
    return (
        # All at once: the end of a window is computed from the start as it was read.
        frame.withColumns({"window_start": start.cast("BIGINT"), "window_end": end.cast("BIGINT")})
        .withColumn("topic", F.lit(store.changelog))
        .select(*_ROW_COLUMNS)
    )


def split_account_keys(account: Account, target: ReconciliationTarget) -> Account:
    """Split the windowed keys of a topic's expected rows, which are whole as they are derived."""
    if target.spec is not None or target.windowed is None:
        return account
    origins = account.origins
    if origins is not None and set(KEY_COLUMNS) <= set(origins.columns):
        origins = split_windowed_keys(origins, target)
    return replace(account, expected=split_windowed_keys(account.expected, target), origins=origins)


def split_windowed_keys(frame: DataFrame, target: ReconciliationTarget) -> DataFrame:
    """Split the keys of a topic into key, window start and window end, null without windows."""
    key, start, end = F.col("key"), F.lit(None).cast("BIGINT"), F.lit(None).cast("BIGINT")
    length = F.octet_length("key")
    if target.windowed == "time":
        start = _read_int64(key, length - _TIME_BYTES)
        end = _compute_window_end(start, target.window_size_ms)
        key = F.substring(key, F.lit(1), length - _TIME_BYTES)
    elif target.windowed == "session":
        end = _read_int64(key, length - 2 * _TIME_BYTES)
        start = _read_int64(key, length - _TIME_BYTES)
        key = F.substring(key, F.lit(1), length - 2 * _TIME_BYTES)
    columns = {"key": key, "window_start": start, "window_end": end}
    return frame.select(
        *(column.alias(name) for name, column in columns.items()),
        *(name for name in frame.columns if name not in columns),
    )


def _compute_window_end(start: Column, size_ms: int | None) -> Column:
    """Compute a window's end from its start and size; a window without a size has no end."""
    if size_ms is None or size_ms == TIME_MAX:
        return F.lit(TIME_MAX).cast("BIGINT")
    return start + F.lit(size_ms)


def _read_int64(data: Column, byte_offset: Column) -> Column:
    """Decode the big-endian integer of eight bytes that follows `byte_offset` bytes."""
    return F.conv(F.hex(F.substring(data, byte_offset + 1, F.lit(_TIME_BYTES))), 16, -10).cast(
        "BIGINT"
    )


def select_targets(
    targets: Iterable[ReconciliationTarget], names: Iterable[str]
) -> list[ReconciliationTarget]:
    """Select the targets with these names. Raises ConfigError for a name that no target has."""
    all_targets = list(targets)
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
