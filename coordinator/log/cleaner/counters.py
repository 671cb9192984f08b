"""Count cleanings, failures, busy time and removed bytes of the log cleaner, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CleanerCounters:
    """Counts cleanings, the time on the broker's thread that they took, and what they brought."""

    cleaned: int = 0  # logs, each as often as it was cleaned
    failed: int = 0
    busy_ns: int = 0
    bytes_removed: int = 0
    dirty_ratio_max: float = 0.0  # of a log, at the last look at all of them
    uncleanable: int = 0  # logs that are left alone
