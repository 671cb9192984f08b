"""Tell how far a reconciliation has come, a line for each stage with its seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class ProgressLines:
    """Formats the ended stages of a reconciliation as lines for `on_line`, if there is one."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._began_s = time.monotonic()
        self._lock = threading.Lock()

    def report_ended_stage(self, description: str) -> None:
        """Tell of a stage that has ended, with the seconds since the one before."""
        now_s = time.monotonic()
        self.report_line(f"{description} in {now_s - self._began_s:.1f} s")
        self._began_s = now_s

    def report_line(self, line: str) -> None:
        """Print a progress line under a lock, as several threads check accounts."""
        if self._on_line is not None:
            with self._lock:
                self._on_line(line)
