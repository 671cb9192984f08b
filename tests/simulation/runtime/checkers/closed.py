"""Check that windows, and joins without a match, come out once, complete, when they close.

At least once where that is the guarantee.

No value is late here: a partition's times grow, and the join waits for longer than any is behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from streams import Windowed
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import INPUT, OTHER, OUTPUT, TIMED, WINDOW_MS
from tests.simulation.runtime.world import CLOSER

Result = tuple[str, str]
"""A key and its value."""


class Closed(RuntimeChecker):
    name: ClassVar[str] = "closed"

    def check_at_rest(self) -> None:
        kind = self.world.runtime.kind
        if kind not in TIMED:
            return
        found: Counter[Result] = Counter()
        for records in self.world.committed(OUTPUT).values():
            for _, key, value in records:
                if CLOSER not in key:
                    shown = value.decode() if kind == "outer" else str(int.from_bytes(value, "big"))
                    found[key, shown] += 1
        wanted = Counter(self._joined() if kind == "outer" else self._windows())
        if not self.world.runtime.is_exactly_once:
            keys = {key for key, _ in wanted} - {key for key, _ in found}
            if keys:
                self.violated(f"nothing has come out of {sorted(keys)[:5]}")
        elif found != wanted:
            self.violated(
                f"lost are {list((wanted - found).items())[:3]}, too many "
                f"{list((found - wanted).items())[:3]}, of {wanted.total()}"
            )

    def _windows(self) -> Iterator[Result]:
        counts: Counter[str] = Counter()
        for each in self.world.timed:
            start_ms = each.time_ms - each.time_ms % WINDOW_MS
            counts[str(Windowed(each.key, start_ms, start_ms + WINDOW_MS))] += 1
        for window, count in counts.items():
            yield window, str(count)

    def _joined(self) -> Iterator[Result]:
        lefts, rights = (
            {each.key for each in self.world.timed if each.topic == topic}
            for topic in (INPUT, OTHER)
        )
        for key in lefts | rights:
            one, other = (key if key in side else None for side in (lefts, rights))
            yield key, f"{one}+{other}"
