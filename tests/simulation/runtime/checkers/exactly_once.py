"""Check that every input is in the committed output exactly once, in the order of its key.

At least once where that is the guarantee.
"""

from __future__ import annotations

from typing import ClassVar

import orjson

from tests.simulation.runtime.applications.application import difference
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import COPIES, OUTPUT, TICK, TIMED, group_of


class ExactlyOnce(RuntimeChecker):
    name: ClassVar[str] = "exactly_once"

    def check_at_rest(self) -> None:
        if self.world.runtime.kind in TIMED or self.world.application is not None:
            return  # see Closed and Results
        if not self.world.runtime.is_exactly_once:
            self._check_nothing_is_lost()
            return
        match self.world.runtime.kind:
            case "copy":
                self._check_copies(OUTPUT)
            case "count":
                self._check_counts()
            case "lines":
                self._check_lists()
                self._check_copies(COPIES)
            case _:
                self._check_lists()

    def _check_nothing_is_lost(self) -> None:
        """Check that each value has come out at some time."""
        if self.world.runtime.kind == "count":
            return
        found: set[str] = set()
        for records in self.world.committed(OUTPUT).values():
            for _, key, value in records:
                if self.world.runtime.kind == "copy":
                    found.add(value.decode())
                elif not key.startswith(TICK):
                    found.update(orjson.loads(value))
        missing = {value for given in self.world.given.values() for value in given} - found
        if missing:
            self.violated(f"lost are {sorted(missing)[:5]}")

    def _check_copies(self, topic: str) -> None:
        found: dict[str, list[str]] = {key: [] for key in self.world.given}
        for records in self.world.committed(topic).values():
            for _, key, value in records:
                found[key].append(value.decode())
        for key, given in self.world.given.items():
            if found[key] != given:
                self.violated(f"of {key} came out {difference(found[key], given)}")

    def _check_counts(self) -> None:
        """Check that counts grow to the number of all values."""
        counts: dict[str, int] = {}
        for records in self.world.committed(OUTPUT).values():
            for offset, key, value in records:
                count = int.from_bytes(value, "big")
                if count <= counts.get(key, 0):
                    self.violated(f"at {offset} {key} is {count}, after {counts.get(key, 0)}")
                counts[key] = count
        wanted = {key: len(given) for key, given in self.world.given.items() if given}
        if counts != wanted:
            self.violated(f"counted were {counts}, and given {wanted}")

    def _check_lists(self) -> None:
        """Check that each list has its key's values, in order, and is longer than the last."""
        longest: dict[str, list[str]] = {}
        ticks: dict[str, int] = {}
        for records in self.world.committed(OUTPUT).values():
            for offset, key, value in records:
                seen = orjson.loads(value)
                if key.startswith(TICK):
                    ticks[key] = ticks.get(key, 0) + 1
                    if seen != [ticks[key]]:
                        self.violated(f"at {offset} {key} ticks {seen} after {ticks[key] - 1}")
                    continue
                before = longest.get(key, [])
                if seen[: len(before)] != before or len(seen) <= len(before):
                    self.violated(
                        f"at {offset} of {OUTPUT} {key} is {seen[-5:]} ({len(seen)}), "
                        f"after {before[-5:]} ({len(before)})"
                    )
                longest[key] = seen
        found: dict[str, list[str]] = {key: [] for key in self.world.given}
        for group, seen in longest.items():
            for value in seen:
                key = value.partition("|")[0]
                if self.world.runtime.kind == "regroup" and group_of(value) != group:
                    self.violated(f"{value} is in {group}")
                found[key].append(value)
        for key, given in self.world.given.items():
            # By group the order is that of the group, whose numbers grow.
            wanted = sorted(given, key=group_of) if self.world.runtime.kind == "regroup" else given
            by_group = sorted(found[key], key=group_of)
            values = by_group if self.world.runtime.kind == "regroup" else found[key]
            if values != wanted:
                self.violated(f"of {key} there is {difference(values, wanted)}")
