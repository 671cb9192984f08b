"""Bundle what logs need of the machine: disk, time, waiting, and a thread for long calls."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.clock import Background, Clock, Scheduler
from coordinator.log.disk import BrokerDisk


@dataclass(frozen=True, slots=True)
class BrokerHost:
    """Bundles the disk, clock, scheduler and background thread that a log works with."""

    disk: BrokerDisk
    clock: Clock
    scheduler: Scheduler
    background: Background
