"""Check that readers see all records of committed transactions, in order, and no aborted ones.

In read_committed: no record of an aborted transaction, or of one that was open then, nothing left
out, and all in order. In read_uncommitted: whatever is in the log.
"""

from __future__ import annotations

from typing import ClassVar

from tests.simulation.checkers.checker import Checker


class AbortedHidden(Checker):
    name: ClassVar[str] = "aborted_hidden"

    def check_at_rest(self) -> None:
        for seen in self.world.ledger.seen:
            truth = self.world.truths[seen.place]
            entries = truth.entries if not seen.is_committed else truth.committed(seen.position)
            wanted = [(e.offset, e.value) for e in entries if e.offset < seen.position]
            end = truth.stable_offset if seen.is_committed else truth.end_offset
            if seen.position != end:
                self.violated(f"{seen.place}: a reader came to {seen.position}, not to {end}")
            for was, should in zip(seen.values, wanted, strict=False):
                if was != should:
                    self.violated(
                        f"{seen.place}: a reader was shown {was} in the place of {should}"
                    )
            if len(seen.values) != len(wanted):
                self.violated(
                    f"{seen.place}: a reader was shown {len(seen.values)} records up to "
                    f"{seen.position}, of {len(wanted)}"
                )
