"""Read RocksDB's statistics out of the text that it has for them.

    rocksdb.bytes.written COUNT : 1188890
    rocksdb.db.flush.micros P50 : 2.9 P95 : 2.9 P99 : 2.9 P100 : 2.9 COUNT : 1 SUM : 2945

rocksdict has no other form of them. They count from when the database was opened.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

STATISTICS_PROPERTY = "rocksdb.options-statistics"


@dataclass(frozen=True, slots=True)
class DatabaseStatistic:
    """Holds one of RocksDB's statistics; those that only count have no sum and no maximum."""

    count: int
    sum: float = 0.0
    maximum: float = 0.0


def parse_statistics(text: str, names: Collection[str]) -> dict[str, DatabaseStatistic]:
    """Return the statistics with these names, those that the text has."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name in names:
            words = rest.split(" ")
            values = dict(zip(words[::3], words[2::3], strict=True))  # NAME : VALUE
            found[name] = DatabaseStatistic(
                int(values["COUNT"]), float(values.get("SUM", 0)), float(values.get("P100", 0))
            )
    return found
