"""Check that every value is committed exactly once, and in its producer's order.

A transaction is committed wholly or not at all, as its response said; and a copy has every
input exactly once.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tests.simulation.checkers.checker import Checker
from tests.simulation.ledger import Outcome, Place
from tests.simulation.world import TOPICS


class ExactlyOnce(Checker):
    name: ClassVar[str] = "exactly_once"

    def check_at_rest(self) -> None:
        committed: dict[Place, list[bytes]] = {}
        for place, truth in self.world.truths.items():
            if truth.open:
                self.violated(f"{place}: a transaction is open for ever: {list(truth.open)}")
            committed[place] = [entry.value for entry in truth.committed(truth.end_offset)]
        self._check_once(committed)
        self._check_order(committed)
        self._check_transactions(committed)
        self._check_acknowledged(committed)
        self._check_copies(committed)

    def _check_once(self, committed: dict[Place, list[bytes]]) -> None:
        counts = Counter(value for values in committed.values() for value in values)
        for value, count in counts.items():
            if count > 1:
                self.violated(f"{value!r} is committed {count} times")

    def _check_order(self, committed: dict[Place, list[bytes]]) -> None:
        for place, values in committed.items():
            last: dict[bytes, tuple[int, ...]] = {}
            for value in values:
                name, numbers = _parsed(value)
                if numbers <= last.get(name, (-1,)):
                    self.violated(f"{place}: {value!r} comes after {last[name]}")
                last[name] = numbers

    def _check_transactions(self, committed: dict[Place, list[bytes]]) -> None:
        present = {place: set(values) for place, values in committed.items()}
        for sent in self.world.ledger.transactions:
            if sent.outcome is Outcome.ABORTED:
                found = [value for place, value in sent.values if value in present[place]]
                if found:
                    self.violated(f"{found[0]!r} is of a transaction that was never committed")
                continue
            missing = [value for place, value in sent.values if value not in present[place]]
            if sent.outcome is Outcome.COMMITTED and missing:
                self.violated(f"{missing[0]!r} is missing, of a transaction that was committed")
            if 0 < len(missing) < len(sent.values):
                self.violated(f"{missing[0]!r} is missing, the rest of its transaction is there")

    def _check_acknowledged(self, committed: dict[Place, list[bytes]]) -> None:
        inputs = {
            value for place, values in committed.items() if place[0] == "input" for value in values
        }
        for batch in self.world.ledger.acknowledged:
            if batch.place[0] == "input" and not inputs.issuperset(batch.values):
                self.violated(f"{batch.values} were acknowledged and are not there")

    def _check_copies(self, committed: dict[Place, list[bytes]]) -> None:
        for index in range(TOPICS["input"]):
            copied = copied_offsets(committed, index)
            if copied != list(range(len(copied))):
                self.violated(f"of input {index} these were copied: {copied}")


def copied_offsets(committed: dict[Place, list[bytes]], partition: int) -> list[int]:
    """Return the sorted offsets of a partition of `input` that were copied."""
    values = (v for place, each in committed.items() if place[0] == "output" for v in each)
    name = b"copier-%d" % partition
    return sorted(numbers[0] for found, numbers in map(_parsed, values) if found == name)


def _parsed(value: bytes) -> tuple[bytes, tuple[int, ...]]:
    """Return the producer's name and its numbers, or of a copy the offset only."""
    name, *numbers = value.split(b"|")
    if name.startswith(b"copier"):
        numbers = numbers[:1]
    return name, tuple(map(int, numbers))
