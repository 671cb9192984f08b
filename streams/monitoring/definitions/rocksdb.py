"""Define the figures of RocksDB under the names that dashboards for Kafka Streams query.

The label with a store's name tells the kind of the store, as in Kafka Streams.
"""

from __future__ import annotations

from streams.graph.nodes import StoreKind
from streams.monitoring.definitions.kafka_names import define_figure

TASK_LABELS = ("thread_id", "task_id")
_STATE_LABELS = {StoreKind.WINDOW: "window", StoreKind.SESSION: "session"}
"""The word in the label of a store, for the kinds that have one in Kafka Streams."""
_IN_MEMORY_LABELS = {**_STATE_LABELS, StoreKind.BUFFER: "suppression"}
ROCKSDB_LABELS = ("rocksdb_state_id", "rocksdb_window_state_id", "rocksdb_session_state_id")
"""The labels of which each figure of RocksDB has one."""


def name_state_label(kind: StoreKind, *, persistent: bool) -> str:
    """Return the label that names a store of this kind, such as `rocksdb_window_state_id`."""
    place, words = ("rocksdb", _STATE_LABELS) if persistent else ("in_memory", _IN_MEMORY_LABELS)
    return "_".join(filter(None, (place, words.get(kind), "state_id")))


STATE_GROUP = "stream-state-metrics"
ROCKSDB_PROPERTIES = {
    "num-immutable-mem-table": "Memtables of the store that wait to be flushed",
    "cur-size-active-mem-table": "Bytes of the store's active memtable",
    "cur-size-all-mem-tables": "Bytes of the active and of unflushed memtables of the store",
    "size-all-mem-tables": "Bytes of all memtables of the store, pinned ones included",
    "num-entries-active-mem-table": "Entries in the active memtable of the store",
    "num-deletes-active-mem-table": "Deletions in the active memtable of the store",
    "num-entries-imm-mem-tables": "Entries in the memtables that wait to be flushed",
    "num-deletes-imm-mem-tables": "Deletions in the memtables that wait to be flushed",
    "mem-table-flush-pending": "1 if a memtable of the store waits to be flushed, else 0",
    "num-running-flushes": "Flushes of memtables that run at present",
    "compaction-pending": "1 if a compaction of the store waits to run, else 0",
    "num-running-compactions": "Compactions of the store that run at present",
    "estimate-pending-compaction-bytes": "About how many bytes compactions have to rewrite",
    "total-sst-files-size": "Bytes of all table files of the store",
    "live-sst-files-size": "Bytes of the table files of the store's latest version",
    "num-live-versions": "Versions of the store's files that are still in use",
    "block-cache-capacity": "Bytes that the block cache of the store may take",
    "block-cache-usage": "Bytes of the blocks in the block cache of the store",
    "block-cache-pinned-usage": "Bytes of the blocks that are pinned in the block cache",
    "estimate-num-keys": "About how many keys the store has",
    "estimate-table-readers-mem": "About how many bytes readers of table files take",
    "background-errors": "Errors of flushes and compactions in the background",
}
"""Kafka Streams' metrics that are properties of RocksDB, with their help texts."""
DATABASE_PROPERTIES = {each: f"rocksdb.{each}" for each in ROCKSDB_PROPERTIES}
"""The names that RocksDB has for them."""
_PROPERTIES = tuple(
    define_figure(STATE_GROUP, metric, help_text, TASK_LABELS, one_of=ROCKSDB_LABELS)
    for metric, help_text in ROCKSDB_PROPERTIES.items()
)
IN_MEMORY_METRIC = "num-keys"
"""Kafka Streams' metric of stores in memory."""
_IN_MEMORY = define_figure(
    STATE_GROUP,
    IN_MEMORY_METRIC,
    "Entries of a store in memory, those of the open transaction left out",
    TASK_LABELS,
    one_of=("in_memory_state_id", "in_memory_window_state_id", "in_memory_session_state_id"),
)

_STATISTICS_HELP = {
    "bytes-written-rate": ("Bytes a second that were written to the store", "bytes"),
    "bytes-written-total": ("Bytes that were written to the store since it was opened", "bytes"),
    "bytes-read-rate": ("Bytes a second that were read by key from the store", "bytes"),
    "bytes-read-total": ("Bytes that were read by key since the store was opened", "bytes"),
    "memtable-bytes-flushed-rate": ("Bytes a second that flushes have written", "bytes"),
    "memtable-bytes-flushed-total": ("Bytes that flushes have written since opening", "bytes"),
    "memtable-hit-ratio": ("Share of the keys looked for that a memtable had", ""),
    "memtable-flush-time-avg": ("Average milliseconds of a flush since opening", "milliseconds"),
    "memtable-flush-time-max": ("Longest milliseconds of a flush since opening", "milliseconds"),
    "block-cache-data-hit-ratio": ("Share of the data blocks asked for that were cached", ""),
    "block-cache-index-hit-ratio": ("Share of the index blocks asked for that were cached", ""),
    "block-cache-filter-hit-ratio": ("Share of the filter blocks asked for that were cached", ""),
    "write-stall-duration-avg": ("Milliseconds a minute in which writes waited", "milliseconds"),
    "write-stall-duration-total": ("Milliseconds that writes waited in all", "milliseconds"),
    "bytes-read-compaction-rate": ("Bytes a second that compactions have read", "bytes"),
    "bytes-written-compaction-rate": ("Bytes a second that compactions have written", "bytes"),
    "compaction-time-avg": ("Average milliseconds of a compaction since opening", "milliseconds"),
    "compaction-time-max": ("Longest milliseconds of a compaction since opening", "milliseconds"),
    "number-open-files": ("Files of the store that the process has open", "files"),
    "number-file-errors-total": ("Errors when files of the store were read or written", ""),
}
ROCKSDB_STATISTICS = tuple(_STATISTICS_HELP)
"""Kafka Streams' metrics that come of RocksDB's statistics."""
_STATISTICS = tuple(
    define_figure(
        STATE_GROUP, metric, text, TASK_LABELS, unit, one_of=ROCKSDB_LABELS, level="debug"
    )
    for metric, (text, unit) in _STATISTICS_HELP.items()
)

ROCKSDB_DEFINITIONS = (*_PROPERTIES, _IN_MEMORY, *_STATISTICS)
