"""Keep in a file what a worker restores and follows, so that it can be read after `kill -9` too."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from streams.common.topic_partitions import Partition
from streams.runtime.restoring.progress import RestoreListener, SuspendReason

RESTORES_FILE = "restores.jsonl"


class RestoreEvent(StrEnum):
    """Names what happened to a store."""

    FOLLOWED = "followed"
    PROMOTED = "promoted"
    BEGAN = "began"
    RESTORED = "restored"


class RestoreStep(NamedTuple):
    """Holds what happened to the store of a partition, at which offset, with how many records."""

    event: RestoreEvent
    partition: int
    offset: int
    record_count: int


class RestoreLog(RestoreListener):
    """Appends each step of restores and standbys to a file in a worker's state directory."""

    def __init__(self, state: Path) -> None:
        # Each step is one write, so that a kill leaves whole lines.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(state / RESTORES_FILE, flags, 0o644)

    def on_restore_start(self, changelog: Partition, store: str, begin: int, end: int) -> None:
        self._append(RestoreEvent.BEGAN, changelog, begin, 0)

    def on_batch_restored(
        self, changelog: Partition, store: str, position: int, records: int
    ) -> None:
        self._append(RestoreEvent.RESTORED, changelog, position, records)

    def on_batch_loaded(
        self, changelog: Partition, store: str, task: str, position: int, records: int, end: int
    ) -> None:
        self._append(RestoreEvent.FOLLOWED, changelog, position, records)

    def on_update_suspended(
        self, changelog: Partition, store: str, position: int, end: int, reason: SuspendReason
    ) -> None:
        if reason is SuspendReason.PROMOTED:
            self._append(RestoreEvent.PROMOTED, changelog, position, 0)

    def _append(self, event: RestoreEvent, changelog: Partition, offset: int, count: int) -> None:
        step = RestoreStep(event, changelog.number, offset, count)
        os.write(self._file, json.dumps(step).encode() + b"\n")


def read_restores(state: Path) -> list[RestoreStep]:
    """Return the steps that the worker of a state directory has kept, in their order."""
    path = state / RESTORES_FILE
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [RestoreStep(RestoreEvent(event), *rest) for event, *rest in map(json.loads, lines)]


def count_restored(steps: list[RestoreStep]) -> int:
    """Return how many records were read before tasks could be active."""
    return sum(step.record_count for step in steps if step.event is RestoreEvent.RESTORED)
