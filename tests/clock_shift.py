"""Let days pass for processes: shift the wall clock of a broker and its workers, by a file.

Each of them is given the file by argument (docs/decisions/0051) and looks at it whenever it looks
at the clock; the monotonic clock is not shifted.
"""

from __future__ import annotations

import time
from pathlib import Path

DAY_MS = 86_400_000


class ClockShift:
    """Represents the days by which the file `path` shifts the clock of whoever follows it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._shift_ms = 0

    @property
    def broker_options(self) -> tuple[str, ...]:
        """Return what the embedded broker's command line needs to follow this clock."""
        return ("--clock-shift", str(self.path))

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._shift_ms

    def pass_days(self, days: float) -> None:
        """Move the wall clock forward, for all who follow it at once."""
        self._shift_ms += int(days * DAY_MS)
        new = self.path.with_suffix(".new")
        new.write_text(str(self._shift_ms))
        new.replace(self.path)
