"""Generate logs of any size: recorded lines in between many that tell nothing, over many hours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import cycle
from pathlib import Path

from tests.logs.recorded_text import read_recording

_QUIET_LINES = 2_000
_TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_BEGIN = datetime.fromisoformat("2026-11-01")
_QUIET = (
    "INFO streams.runtime.threads.thread_tasks: thread 0 runs tasks 0_0, 0_1, 0_2, 0_3",
    "INFO streams.membership.group_join: joining group words: joining again",
    "DEBUG streams.runtime.threads.loop: thread 0 committed 3 tasks, 1200 records, in 12 ms",
)


def generate_lines(quiet_lines: int = _QUIET_LINES) -> Iterator[str]:
    """Yield lines without end: a recorded fault, ten quiet minutes, another fault, and so on.

    The quiet minutes are ten by default; with fewer lines they are shorter.
    """
    at = _BEGIN
    for name in cycle(("ours-fenced", "ours-store-damaged", "ours-slow-step", "ours-stopped")):
        for line in read_recording(name):
            at += timedelta(milliseconds=100)
            yield _TIME.sub(at.strftime("%Y-%m-%d %H:%M:%S"), line)
        for number in range(quiet_lines):
            at += timedelta(milliseconds=300)
            yield f"{at:%Y-%m-%d %H:%M:%S},000 4711 {_QUIET[number % len(_QUIET)]}"


def write_log(path: Path, size: int, quiet_lines: int = _QUIET_LINES) -> None:
    """Write a log of a size in bytes, or some more."""
    written = 0
    with path.open("w") as file:
        for line in generate_lines(quiet_lines):
            written += file.write(line + "\n")
            if written >= size:
                return
