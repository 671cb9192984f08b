"""Count a stream thread's records, commits and rebalances, for metrics, logs and tests."""

from __future__ import annotations

from dataclasses import dataclass

from streams.errors import TaskCorrupted, TaskMigrated, ValueRefused, WriteRefused


@dataclass(slots=True)
class ThreadCounters:
    """Counts a stream thread's records, commits, rebalances and restores since it began."""

    records: int = 0
    """Records processed, those that were rolled back later included."""
    dropped: int = 0
    """Processed records that were dropped, as Kafka Streams' dropped-records counts them: no key or
    value to aggregate, a failure that a handler skipped or made a dead letter of."""
    late: int = 0
    """Dropped records whose window had closed, counted once for each window that missed one."""
    dead_letters: int = 0
    """Dead letters written, those of transactions that were rolled back later included: a repeated
    one counts again."""
    punctuations: int = 0
    commits: int = 0
    """Commits that had something to commit."""
    early_commits: int = 0
    """Commits before the interval was over: a processor requested one, or memory ran full."""
    rebalances: int = 0
    restored_records: int = 0
    standby_records: int = 0
    """Records that stores of standby and warm-up tasks have got from their changelogs."""
    offsets_out_of_range: int = 0
    records_out_of_range: int = 0
    """Records skipped by `offset_out_of_range`, which were still to be read and never will be."""
    keys_sampled: int = 0
    """Keys of inputs that were compared with their partition
    (`streams.runtime.tasks.key_placement`)."""
    keys_misplaced: int = 0
    """Those of them that were not in the partition that Kafka's producers choose."""
    recoveries: int = 0
    """Recoveries of all kinds; the kinds follow."""
    outcomes_unknown: int = 0
    tasks_migrated: int = 0
    tasks_corrupted: int = 0
    values_refused: int = 0
    """Transactions repeated to find the record that wrote a value which a serde refuses."""
    writes_refused: int = 0
    """Transactions repeated since a broker has refused a record of theirs."""

    def count_recovery(self, error: Exception) -> None:
        """Count a recovery, by the kind of `error`."""
        self.recoveries += 1
        match error:
            case TaskMigrated():
                self.tasks_migrated += 1
            case TaskCorrupted():
                self.tasks_corrupted += 1
            case ValueRefused():
                self.values_refused += 1
            case WriteRefused():
                self.writes_refused += 1
            case _:
                self.outcomes_unknown += 1
