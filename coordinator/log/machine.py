"""What a log is given of the outside: disk, time, waiting, and a thread for long calls."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.clock import Background, Clock, Scheduler
from coordinator.log.disk import Disk


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that a log lives on."""

    disk: Disk
    clock: Clock
    scheduler: Scheduler
    background: Background
