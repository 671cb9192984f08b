"""Where the records of a transaction went, as their delivery reports tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.errors import OutcomeUnknown
from streams.ledger import Run
from streams.positions import Partition

Report = Callable[[Any, Any], None]
"""Is told of a delivery: the error or None, and the message."""


class Written:
    """Where the records of one producer went since the last `take`."""

    __slots__ = ("_lost", "_runs")

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], list[list[int]]] = {}
        self._lost: list[str] = []

    def report(self, error: Any, message: Any) -> None:
        """A delivery report. Those of one partition come in the order of its offsets."""
        offset = message.offset()
        partition = message.topic(), message.partition()
        if error is not None or offset is None or offset < 0:
            # Also where the broker took it for a repetition and did not say of which offset.
            self._lost.append(f"{partition[0]}[{partition[1]}]: {error or 'no offset'}")
            return
        runs = self._runs.get(partition)
        if runs is None:
            self._runs[partition] = [[offset, offset]]
        elif runs[-1][1] + 1 == offset:
            runs[-1][1] = offset
        else:
            runs.append([offset, offset])

    def take(self) -> dict[Partition, tuple[Run, ...]]:
        """All that was written, and begin anew. Raises OutcomeUnknown for what can't be told."""
        if self._lost:
            raise OutcomeUnknown(f"written where can't be told: {', '.join(self._lost[:5])}")
        runs, self._runs = self._runs, {}
        return {
            Partition(*partition): tuple(Run(first, last) for first, last in found)
            for partition, found in runs.items()
        }


def with_account(report: Report, written: Written | None) -> Report:
    """Return what to hand to `produce` so that `report` is told of the delivery: a record has one
    report only, and a producer that keeps an account (`written`) needs it for that too."""
    if written is None:
        return report
    account = written.report

    def both(error: Any, message: Any) -> None:
        report(error, message)
        account(error, message)

    return both
