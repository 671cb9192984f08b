"""Check that what an application committed before it refused to go on is right so far."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import orjson

from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.checkers.closed import Closed
from tests.simulation.runtime.topologies import OUTPUT, TIMED, group_of
from tests.simulation.runtime.world import CLOSER


class Partial(RuntimeChecker):
    name: ClassVar[str] = "partial"

    def check_at_rest(self) -> None:
        kind = self.world.runtime.kind
        if kind in TIMED:
            self._check_windows()
        elif kind == "count":
            self._check_counts()
        elif self.world.application is not None:
            return  # its model needs all of the input
        elif kind == "copy":
            self._check_copies()
        else:
            self._check_lists()

    def _check_counts(self) -> None:
        """Check that counts only grow, and to no more than there are values."""
        counts: dict[str, int] = {}
        for records in self.world.committed(OUTPUT).values():
            for offset, key, value in records:
                count = int.from_bytes(value, "big")
                if not counts.get(key, 0) < count <= len(self.world.given[key]):
                    self.violated(f"at {offset} {key} is {count}, after {counts.get(key, 0)}")
                counts[key] = count

    def _check_copies(self) -> None:
        found: dict[str, list[str]] = {key: [] for key in self.world.given}
        for records in self.world.committed(OUTPUT).values():
            for _, key, value in records:
                found[key].append(value.decode())
        for key, values in found.items():
            if values != self.world.given[key][: len(values)]:
                self.violated(f"of {key} came out {values[-5:]} as the last ones")

    def _check_lists(self) -> None:
        """Check that each list has the first values of its key, or its group, in their order."""
        by_group = self.world.runtime.kind == "regroup"
        for records in self.world.committed(OUTPUT).values():
            for offset, key, value in records:
                seen: list[str] = orjson.loads(value)
                for source, given in self.world.given.items():
                    mine = [each for each in seen if each.partition("|")[0] == source]
                    wanted = [each for each in given if not by_group or group_of(each) == key]
                    if mine != wanted[: len(mine)]:
                        self.violated(f"at {offset} {key} is {seen[-5:]}")

    def _check_windows(self) -> None:
        """Check that each window that came out is complete, and came once."""
        wanted = Counter(Closed(self.world)._windows())
        for records in self.world.committed(OUTPUT).values():
            for offset, key, value in records:
                found = key, str(int.from_bytes(value, "big"))
                if CLOSER not in key and wanted[found] <= 0:
                    self.violated(f"at {offset} is {found}")
                wanted[found] -= 1
