"""At least once, what a key has collected only grows in the changelog: whoever writes it goes on
from what was there. A worker that writes after its successor goes back to what it knew.

Nothing fences a write at least once; a worker asks for its membership before it writes, and may be
stopped between the two. So this is a law of histories in which it is stopped elsewhere.
"""

from __future__ import annotations

from typing import ClassVar

import orjson

from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import CHANGELOG


class Grown(RuntimeChecker):
    name: ClassVar[str] = "grown"

    def ended(self) -> None:
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
