"""Make figures of RocksDB's statistics (Kafka Streams' RocksDBMetricsRecorder).

What RocksDB has counted is read when metrics are read. Rates and ratios are those since a reading
that is 30 to 60 seconds old, or as old as there is one. Times are in milliseconds, as Kafka
documents them; Kafka Streams 4.4 passes RocksDB's microseconds on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from state.database_statistics import DatabaseStatistic

_WINDOW_S = 30.0
_US_PER_MS = 1_000
_MINUTE_S = 60
_RATES = {
    "bytes-written-rate": "rocksdb.bytes.written",
    "bytes-read-rate": "rocksdb.bytes.read",
    "memtable-bytes-flushed-rate": "rocksdb.flush.write.bytes",
    "bytes-read-compaction-rate": "rocksdb.compact.read.bytes",
    "bytes-written-compaction-rate": "rocksdb.compact.write.bytes",
}
_TOTALS = {
    "bytes-written-total": "rocksdb.bytes.written",
    "bytes-read-total": "rocksdb.bytes.read",
    "memtable-bytes-flushed-total": "rocksdb.flush.write.bytes",
    "number-file-errors-total": "rocksdb.no.file.errors",
}
_HIT_RATIOS = {
    "memtable-hit-ratio": "rocksdb.memtable",
    "block-cache-data-hit-ratio": "rocksdb.block.cache.data",
    "block-cache-index-hit-ratio": "rocksdb.block.cache.index",
    "block-cache-filter-hit-ratio": "rocksdb.block.cache.filter",
}
_TIMES = {
    "memtable-flush-time": "rocksdb.db.flush.micros",
    "compaction-time": "rocksdb.compaction.times.micros",
}
_STALL = "rocksdb.stall.micros"
STATISTICS_NAMES = frozenset(
    {
        *(*_RATES.values(), *_TOTALS.values(), *_TIMES.values(), _STALL),
        *(f"{each}.{result}" for each in _HIT_RATIOS.values() for result in ("hit", "miss")),
    }
)
"""The statistics of RocksDB that figures are made of."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Holds the counts of one reading, by RocksDB's names, and when that was."""

    at_s: float
    counts: Mapping[str, int]


class RocksStatisticsRecorder:
    """Keeps two readings of each store, of which rates and ratios are made.

    Several scrapes at a time do no harm: each takes the readings that it finds.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._readings: dict[tuple[str, ...], tuple[_Reading, _Reading]] = {}
        """The reading to compare with, and a later one that takes its place in time."""

    def record_and_compute_figures(
        self, store: tuple[str, ...], statistics: Mapping[str, DatabaseStatistic]
    ) -> dict[str, float]:
        """Return the figures of a store by Kafka Streams' names, and keep this reading."""
        if not statistics:
            return {}
        now = _Reading(self._monotonic_s(), {name: each.count for name, each in statistics.items()})
        past = self._find_past_reading(store, now)
        elapsed_s = max(now.at_s - past.at_s, 1.0)
        counted = {name: count - past.counts[name] for name, count in now.counts.items()}
        figures = {metric: counted[name] / elapsed_s for metric, name in _RATES.items()}
        figures |= {metric: float(now.counts[name]) for metric, name in _TOTALS.items()}
        for metric, name in _HIT_RATIOS.items():
            hits, misses = counted[f"{name}.hit"], counted[f"{name}.miss"]
            figures[metric] = hits / (hits + misses) if hits else 0.0
        for metric, name in _TIMES.items():
            each = statistics[name]
            figures[f"{metric}-avg"] = each.sum / max(each.count, 1) / _US_PER_MS
            figures[f"{metric}-max"] = each.maximum / _US_PER_MS
        figures["write-stall-duration-avg"] = counted[_STALL] / _US_PER_MS / elapsed_s * _MINUTE_S
        figures["write-stall-duration-total"] = now.counts[_STALL] / _US_PER_MS
        return figures

    def forget_other_stores(self, stores: set[tuple[str, ...]]) -> None:
        """Forget the readings of stores that are not among these: they are closed."""
        for store in self._readings.keys() - stores:
            self._readings.pop(store, None)

    def _find_past_reading(self, store: tuple[str, ...], now: _Reading) -> _Reading:
        """Return the reading to compare with, this one if there is none of the same database."""
        past, later = self._readings.get(store, (now, now))
        if any(count < later.counts[name] for name, count in now.counts.items()):
            past = later = now  # the store was closed and opened again
        elif now.at_s - later.at_s >= _WINDOW_S:
            past, later = later, now
        self._readings[store] = (past, later)
        return past
