"""Check that compaction keeps offsets, keeps no aborted record, and keeps each key's last one."""

from __future__ import annotations

from typing import ClassVar

from tests.simulation.checkers.checker import Checker


class Compacted(Checker):
    name: ClassVar[str] = "compacted"

    def check_at_rest(self) -> None:
        for seen in self.world.ledger.seen_compacted:
            truth = self.world.truths[seen.place]
            committed = truth.committed(seen.position)
            known = {entry.offset: entry.value for entry in committed}
            if seen.position != truth.stable_offset:
                self.violated(
                    f"{seen.place}: a reader came to {seen.position}, not to {truth.stable_offset}"
                )
            offsets = [offset for offset, _ in seen.values]
            if offsets != sorted(set(offsets)):
                self.violated(f"{seen.place}: offsets are not in order: {offsets}")
            for offset, value in seen.values:
                if known.get(offset) != value:
                    self.violated(
                        f"{seen.place}: a reader was shown {value!r} at {offset}, where "
                        f"{known.get(offset)!r} was committed"
                    )
            shown = {value for _, value in seen.values}
            for key, value in {entry.key: entry.value for entry in committed}.items():
                if value not in shown:
                    self.violated(f"{seen.place}: {value!r}, the last of {key!r}, is gone")
