"""Track where the records of a transaction were written, by their delivery reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.ledger import WrittenRange

DeliveryReport = Callable[[Any, Any], None]
"""A delivery report: is called with the error or None, and the message."""


class DeliveredOffsets:
    """Collects the offsets at which one producer's records were written."""

    __slots__ = ("_runs", "_unknown_deliveries")

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], list[list[int]]] = {}
        self._unknown_deliveries: list[str] = []

    def note_delivery(self, error: Any, message: Any) -> None:
        """Note the offset of a delivered record: a delivery report of confluent-kafka.

        The reports of one partition come in the order of its offsets.
        """
        offset = message.offset()
        partition = message.topic(), message.partition()
        if error is not None or offset is None or offset < 0:
            # Also where the broker took the record for a duplicate and returned no offset.
            self._unknown_deliveries.append(
                f"{partition[0]}[{partition[1]}]: {error or 'no offset'}"
            )
            return
        runs = self._runs.get(partition)
        if runs is None:
            self._runs[partition] = [[offset, offset]]
        elif runs[-1][1] + 1 == offset:
            runs[-1][1] = offset
        else:
            runs.append([offset, offset])

    def pop_offset_runs(self) -> dict[Partition, tuple[WrittenRange, ...]]:
        """Return and forget the runs of offsets that were written in each partition.

        Raises: OutcomeUnknown if the offset of a record is not known.
        """
        if self._unknown_deliveries:
            raise OutcomeUnknown(
                f"written where can't be told: {', '.join(self._unknown_deliveries[:5])}"
            )
        runs, self._runs = self._runs, {}
        return {
            Partition(*partition): tuple(WrittenRange(first, last) for first, last in found)
            for partition, found in runs.items()
        }


def add_offset_tracking(
    report: DeliveryReport, delivered: DeliveredOffsets | None
) -> DeliveryReport:
    """Return a delivery report that calls `report` and notes the offset in `delivered`.

    `delivered` may be None. A record has one report only, and a producer that tracks deliveries
    needs it for that too.
    """
    if delivered is None:
        return report
    note_delivery = delivered.note_delivery

    def call_both(error: Any, message: Any) -> None:
        report(error, message)
        note_delivery(error, message)

    return call_both


def create_failure_collector(
    undelivered: list[Any],
) -> DeliveryReport:
    """Return a delivery report that appends each failure to `undelivered`."""

    def append_failure(error: Any, _: Any) -> None:
        if error is not None:
            undelivered.append(error)

    return append_failure
