"""Count what has been done to offsets since the broker started.

Topics and groups that are deleted take their offsets along uncounted, as in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class OffsetCounters:
    """Counts partitions whose offset was committed, has expired, or was deleted by OffsetDelete.

    Commits count in a transaction or not.
    """

    commits: int = 0
    expirations: int = 0
    deletions: int = 0
