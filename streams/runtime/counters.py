"""Counters of one stream thread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """What a thread has done."""

    records: int = 0
    commits: int = 0
    rebalances: int = 0
    restored_records: int = 0
    offsets_out_of_range: int = 0
    records_out_of_range: int = 0
    """By `offset_out_of_range`: what was still to be read and never will be."""
    recoveries: int = 0
    """All of them; by kind below."""
    outcomes_unknown: int = 0
    tasks_migrated: int = 0
    tasks_corrupted: int = 0
    skipped_records: int = 0
    """Records that failed and were passed over, dead letters included."""
    dead_letters: int = 0
