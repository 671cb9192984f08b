"""Hold how often brokers keep topics: for warnings, and to describe internal topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Replication(NamedTuple):
    """Holds how many brokers there are, and the least replicas of a partition by topic."""

    broker_count: int
    replica_counts: Mapping[str, int]
