"""Check that a key's collected values only grow in the changelog, under at least once.

Whoever writes it goes on from what was there. A worker that writes after its successor goes back to
its old state.

Nothing fences a write at least once; a worker asks for its membership before it writes, and may be
stopped between the two. So this holds in histories in which it is stopped elsewhere.
"""

from __future__ import annotations

from typing import ClassVar

import orjson

from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import CHANGELOG


class Grown(RuntimeChecker):
    name: ClassVar[str] = "grown"

    def check_at_rest(self) -> None:
        if not self.world.runtime.stops_before_asking:
            return
        for place, truth in self.world.truths.items():
            collected: dict[bytes, list[str]] = {}
            for entry in truth.entries if place[0] == CHANGELOG else ():
                key, now = entry.key or b"", orjson.loads(entry.value)
                before = collected.get(key, [])
                if now[: len(before)] != before:
                    self.violated(
                        f"{place}@{entry.offset}: {key!r} goes back from {before[-3:]} "
                        f"({len(before)}) to {now[-3:]} ({len(now)})"
                    )
                collected[key] = now
