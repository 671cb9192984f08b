"""Decide which transactions and records are in a cut, and which records are in transit.

A record is in a cut iff its transaction is; and a transaction is iff what it read is not beyond the
cut's offsets, and what it changed not beyond the positions of the stores. For topics that are
written the cut keeps what follows from it: `ends`, and `beyond`, the runs of offsets below the ends
that are not in the cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import LedgerTransaction, WrittenRange
from streams.spark.cuts.cut import Cut
from streams.spark.source.ranges import OffsetRange

LoweredEnds: TypeAlias = dict[Partition, int]
RemainingRuns: TypeAlias = dict[Partition, tuple[WrittenRange, ...]]


class Members:
    """Decides whether a transaction of the ledger is in `cut`."""

    def __init__(self, cut: Cut) -> None:
        self._offsets, self._commits = cut.offsets, cut.commits
        read = {topic for topic, _ in cut.offsets}
        self._positions = {
            Partition(store.changelog, number): at
            for store in cut.stores.values()
            if store.changelog not in read  # an input's position is its committed offset
            for number, at in store.positions.items()
        }

    def includes_transaction(self, transaction: LedgerTransaction) -> bool:
        """Return whether a transaction is in the cut.

        A transaction of punctuations alone commits the same offsets as the one before it; the
        number of its commit tells the two apart. Where the metadata had no room for a number, the
        changelogs that the transaction wrote decide, and if it wrote none it is in the cut iff the
        one before it is (docs/decisions/0008).
        """
        positions = self._positions
        return transaction.is_in(self._offsets, self._commits) and all(
            runs[-1].last < positions[partition]
            for partition, runs in transaction.written.items()
            if partition in positions
        )


def find_runs_outside_cut(
    transactions: Iterable[LedgerTransaction], cut: Cut, end_offsets: Mapping[Partition, int]
) -> dict[Partition, tuple[WrittenRange, ...]]:
    """Collect the runs of offsets below `end_offsets` that transactions outside the cut wrote."""
    members = Members(cut)
    runs_by_partition: dict[Partition, list[WrittenRange]] = {}
    for entry in transactions:
        if not members.includes_transaction(entry):
            for partition, runs in entry.written.items():
                below = [run for run in runs if run.first < end_offsets.get(partition, 0)]
                runs_by_partition.setdefault(partition, []).extend(below)
    return {
        partition: tuple(merge_runs(runs)) for partition, runs in runs_by_partition.items() if runs
    }


def trim_excluded_ends(
    end_offsets: Mapping[Partition, int],
    excluded_runs: Mapping[Partition, tuple[WrittenRange, ...]],
) -> tuple[LoweredEnds, RemainingRuns]:
    """Lower the end offsets below trailing runs outside the cut, and return the runs that remain.

    Ends and runs stand for the same records before and after. `excluded_runs` are merged and in
    order. Returns the ends and the runs that are left.
    """
    lowered_ends, remaining_runs = dict(end_offsets), {}
    for partition, runs in excluded_runs.items():
        at = len(runs)
        while at and runs[at - 1].last >= lowered_ends[partition] - 1:
            at -= 1
            lowered_ends[partition] = runs[at].first
        if at:
            remaining_runs[partition] = runs[:at]
    return lowered_ends, remaining_runs


def merge_runs(runs: Iterable[WrittenRange]) -> list[WrittenRange]:
    """Sort runs of offsets, and join those that touch or overlap."""
    found: list[WrittenRange] = []
    for run in sorted(runs):
        if found and run.first <= found[-1].last + 1:
            found[-1] = WrittenRange(found[-1].first, max(found[-1].last, run.last))
        else:
            found.append(run)
    return found


def ranges_in_cut(
    cut: Cut, topic: str, first_offsets: Mapping[Partition, int] | None = None
) -> list[OffsetRange]:
    """List the offset ranges of a written topic whose committed records are in the cut.

    The ranges begin at `first_offsets`, or at 0 in partitions without one.

    Raises: ConfigError if the cut doesn't know the ends of the topic.
    """
    written = _require_known_ends(cut)
    topic_ends = {p: at for p, at in written.items() if p.topic == topic}
    if not topic_ends:
        raise ConfigError(
            f"the cut of {cut.application_id!r} tells of no topic {topic!r} that is written; it "
            f"does of {', '.join(sorted({p.topic for p in written})) or 'none'}"
        )
    begins = first_offsets or {}
    return [
        each
        for partition, end in sorted(topic_ends.items())
        for each in subtract_runs(
            OffsetRange(*partition, min(begins.get(partition, 0), end), end),
            cut.beyond.get(partition, ()),
        )
    ]


def in_flight(cut: Cut) -> list[OffsetRange]:
    """List the offset ranges of the records in transit between sub-topologies at the cut.

    Transactions of the cut have written them to topics that the application reads, which are
    repartition topics above all, and it had not read them yet.

    Raises: ConfigError if the cut doesn't know the ends of topics.
    """
    topics = {p.topic for p in _require_known_ends(cut)} & {p.topic for p in cut.offsets}
    ranges = [each for topic in sorted(topics) for each in ranges_in_cut(cut, topic, cut.offsets)]
    return [each for each in ranges if each.first < each.until]


def _require_known_ends(cut: Cut) -> Mapping[Partition, int]:
    """Return the end offsets of written topics at the cut. Raises ConfigError if it has none."""
    if cut.ends is None:
        raise ConfigError(
            f"the cut of {cut.application_id!r} doesn't tell what was written by then: the "
            "application went on while it was taken, and keeps no ledger. Run it with ledger=True, "
            "or let it come to the end of its inputs"
        )
    return cut.ends


def subtract_runs(offset_range: OffsetRange, runs: Iterable[WrittenRange]) -> Iterator[OffsetRange]:
    """Yield the parts of an offset range that none of `runs` covers; `runs` are in ascending order.

    The last part is yielded even if it is empty.
    """
    first = offset_range.first
    for run in runs:
        if run.first >= offset_range.until:
            break
        if first < run.first:
            yield replace(offset_range, first=first, until=run.first)
        first = max(first, run.last + 1)
    yield replace(offset_range, first=min(first, offset_range.until))
