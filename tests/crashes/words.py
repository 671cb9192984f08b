"""Name what a worker says in its log, and wait until it says so."""

from __future__ import annotations

import re

from tests.crashes.trial import CrashWorker
from tests.processes import wait_until

RUNS = re.compile(r"runs tasks \S")
STARTS_OVER = re.compile("starts over from what is committed")
WAITS = re.compile(r"task \d_\d waits:")
HELD_UP = re.compile("waiting for an open transaction to end")


def wait_for(worker: CrashWorker, said: re.Pattern[str], since: int = 0) -> None:
    wait_until(
        lambda: said.search(worker.log_since(since)) is not None,
        what=lambda: f"{said.pattern}: {worker.log_tail()}",
    )
