"""Check transactions: those that hang, those that are open for long, and whom they block.

A reader of committed records stops at the last stable offset, before the first open transaction. A
transaction **hangs** if a partition has it open and no coordinator knows it (KIP-664): nothing ends
it but an administrator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.doctor.cluster_facts import TransactionFacts
from streams.doctor.durations import format_duration
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_unknown_finding,
    create_warning_finding,
)
from streams.doctor.topics import name_partitions
from streams.membership.transactions import DescribedTransactionState, OpenProducer
from streams.runtime.access.resource_names import is_own_transactional_id

TRANSACTIONS = "transactions"
_ASKS = " (it asks first; where there is no terminal add --yes)"
_OPEN_LONG_MS, _OPEN_MS = 60_000, 10_000
_COMMIT_INTERVALS = 5
_MS = 1_000
_BLOCKED_SHOWN = 3


@dataclass(frozen=True, slots=True)
class OpenTransactions:
    """Holds what is open in partitions, and what coordinators know.

    `producers` were open in the logs before the coordinators were asked and after it. `blocked` has
    how many offsets are written behind the last stable offset of each partition.
    """

    producers: Sequence[OpenProducer]
    known: TransactionFacts
    blocked: Mapping[Partition, int]
    now_ms: int


def check_hanging_transactions(open_transactions: OpenTransactions) -> Iterator[DoctorFinding]:
    """Find transactions that no coordinator knows."""
    owned = {each.producer_id for each in open_transactions.known.open}
    without = [each for each in open_transactions.producers if each.producer_id not in owned]
    if without and (open_transactions.known.gap or open_transactions.known.undescribed):
        why = (
            open_transactions.known.gap
            or f"can't describe {', '.join(open_transactions.known.undescribed)}"
        )
        yield create_unknown_finding(
            TRANSACTIONS, f"whether {len(without)} of them hang: their owner is not known: {why}"
        )
        return
    by_producer: dict[tuple[int, int], list[OpenProducer]] = {}
    for each in sorted(without):
        by_producer.setdefault((each.producer_id, each.producer_epoch), []).append(each)
    for of_producer in by_producer.values():
        yield _describe_hanging(of_producer, open_transactions)


def _describe_hanging(
    of_producer: Sequence[OpenProducer], open_transactions: OpenTransactions
) -> DoctorFinding:
    """Return the finding of a producer's transaction that hangs in one partition or in several."""
    first = of_producer[0]
    places = name_partitions([f"{e.partition}@{e.start_offset}" for e in of_producer])
    if len(of_producer) == 1:
        places = f"offset {first.start_offset} of {first.partition}"
    last_ms = max(each.last_timestamp_ms for each in of_producer)
    blocked = "; ".join(
        _describe_blocked(open_transactions, e.partition) for e in of_producer[:_BLOCKED_SHOWN]
    )
    return create_error_finding(
        TRANSACTIONS,
        f"the transaction of producer {first.producer_id} at {places} hangs, "
        f"{format_duration((open_transactions.now_ms - last_ms) / _MS)} after its last write: no "
        "coordinator knows it",
        f"readers of committed records wait there for ever: {blocked}",
        "; ".join(
            format_command(
                *("txn abort", "--topic", e.partition.topic),
                *("--partition", str(e.partition.number), "--start-offset", str(e.start_offset)),
            )
            for e in of_producer
        )
        + _ASKS,
    )


def check_long_transactions(
    open_transactions: OpenTransactions,
    topics: Collection[str],
    application_id: str = "",
    commit_every_ms: int | None = None,
) -> Iterator[DoctorFinding]:
    """Find transactions that are open for long and have written to one of these topics.

    Those of `application_id` are open for long after several of its commit intervals, where these
    are known; those of others after a minute.
    """
    wrong, oldest = False, None
    for each in open_transactions.known.open:
        if not any(p.topic in topics for p in each.partitions) or each.started_ms < 0:
            continue
        age_ms = open_transactions.now_ms - each.started_ms
        is_own = is_own_transactional_id(each.transactional_id, application_id)
        limit_ms = _OPEN_LONG_MS
        if commit_every_ms is not None and is_own:
            limit_ms = max(_OPEN_MS, commit_every_ms * _COMMIT_INTERVALS)
        if age_ms < limit_ms and age_ms <= each.timeout_ms * 2:
            oldest = each if oldest is None or each.started_ms < oldest.started_ms else oldest
            continue
        wrong = True
        yield _describe_long_transaction(each, age_ms, open_transactions, is_own=is_own)
    if not wrong:
        count = format_count(len(open_transactions.known.open), "transaction")
        yield create_fine_finding(
            TRANSACTIONS, f"{count} open, {_describe_oldest(oldest, open_transactions)}"
        )


def _describe_oldest(
    oldest: DescribedTransactionState | None, open_transactions: OpenTransactions
) -> str:
    """Return words for the oldest transaction, with its owner where it is open for some time."""
    age_ms = 0 if oldest is None else open_transactions.now_ms - oldest.started_ms
    if oldest is None or age_ms < _OPEN_MS:
        return "none for long"
    places = name_partitions([str(p) for p in oldest.partitions])
    return (
        f"the oldest for {format_duration(age_ms / _MS)}, by {oldest.transactional_id!r}: readers "
        f"of committed records wait for it in {places} (it times out after "
        f"{format_duration(oldest.timeout_ms / _MS)})"
    )


def _describe_long_transaction(
    each: DescribedTransactionState,
    age_ms: int,
    open_transactions: OpenTransactions,
    *,
    is_own: bool,
) -> DoctorFinding:
    """Return the finding of a transaction that is open for long.

    `is_own`: a worker of the application has it, and to abort it would not help that worker.
    """
    names = name_partitions([str(p) for p in each.partitions])
    what = (
        f"the transaction of {each.transactional_id!r} is open for {format_duration(age_ms / _MS)} "
        f"({each.state}, time-out {format_duration(each.timeout_ms / _MS)}), in {names}"
    )
    abort = format_command("txn abort", each.transactional_id) + _ASKS
    remedy = f"end the program that has it, or {abort}"
    if is_own:
        remedy = "its worker does not commit: what is said here of processing time, health, disks "
        remedy += "and coordinators says why, or its log. One that was killed ends it at its next "
        remedy += f"start. If it is not to start again: {abort}"
    blocked = [
        _describe_blocked(open_transactions, p)
        for p in each.partitions
        if open_transactions.blocked.get(p)
    ]
    consequence = "readers of committed records wait for its end"
    consequence += f": {'; '.join(blocked[:_BLOCKED_SHOWN])}" if blocked else ""
    if age_ms > each.timeout_ms * 2:
        return create_error_finding(
            TRANSACTIONS, f"{what}: its coordinator has not aborted it", consequence, remedy
        )
    return create_warning_finding(TRANSACTIONS, what, consequence, remedy)


def _describe_blocked(open_transactions: OpenTransactions, partition: Partition) -> str:
    count = open_transactions.blocked.get(partition, 0)
    return f"{format_count(count, 'offset')} of {partition} can't be read"
