"""Simulate a machine's state directory, which outlives the workers on it.

What a store's `write` has done survives the end of its process, and of a write that the process
dies in a part, without the checkpoint. What was loaded in bulk survives from `loaded` on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from state.directory import StateDirectory
from state.errors import DirectoryLocked
from state.locks import ProcessFileLock
from state.store_checkpoint import StoreCheckpoint
from state.subtopologies import SubtopologyContents, match_directory_numbers_by_likeness
from tests.simulation.runtime.process import Process

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld


GLOBAL = "global"


@dataclass(slots=True, eq=False)
class Database:
    """Holds a store's data, which outlives a process; `owner` is the one that has it open."""

    path: Path
    data: dict[bytes, bytes] = field(default_factory=dict)
    checkpoint: StoreCheckpoint | None = None
    owner: Process | None = None
    is_corrupt: bool = False
    is_torn: bool = False
    """A process died in a write, so that some data may be ahead of the checkpoint."""
    torn_position: int = -1
    """The position up to which that write, or the last of several, would have come."""
    torn_changes: dict[bytes, bytes | None] = field(default_factory=dict)
    """What such a write has changed."""

    @property
    def task(self) -> str:
        return self.path.parent.name

    @property
    def is_global(self) -> bool:
        """Return whether it is a worker's copy of a global table."""
        return self.path.parent.name == GLOBAL

    @property
    def is_open(self) -> bool:
        return self.owner is not None and not self.owner.is_dead


class Machine:
    """Holds a machine's databases by path, and who holds which task."""

    def __init__(self, world: RuntimeWorld, number: int) -> None:
        self.world = world
        self.path = Path(f"/machine-{number}")
        self.databases: dict[Path, Database] = {}
        self.holders: dict[str, Process] = {}
        self.subtopologies: dict[int, SubtopologyContents] = {}

    def damage(self, random: Random) -> None:
        """Make one of its databases unreadable, or delete it if nobody has it open."""
        # A copy of a global table that is damaged while it is read ends its worker.
        found = self.databases.values()
        paths = sorted(each.path for each in found if not (each.is_global and each.is_open))
        if not paths:
            return
        path = random.choice(paths)
        if random.random() < 0.3 and not self.databases[path].is_open:
            self.world.report_deletion(self.databases.pop(path))
        else:
            self.databases[path].is_corrupt = True
        self.world.log("damaged", path)

    def database(self, path: Path) -> Database:
        return self.databases.setdefault(path, Database(path))


class SimDirectory(StateDirectory):
    """Represents the state directory as one process sees it."""

    def __init__(self, process: Process, machine: Machine) -> None:
        self.path = machine.path
        self._process = process
        self._machine = machine

    def assign_and_save_directory_numbers(
        self, subtopologies: Mapping[int, SubtopologyContents]
    ) -> dict[int, int]:
        known = self._machine.subtopologies
        numbers = match_directory_numbers_by_likeness(known, subtopologies)
        known |= {numbers[number]: contents for number, contents in subtopologies.items()}
        return numbers

    def list_store_names(self, task_name: str) -> frozenset[str]:
        paths = self._machine.databases
        return frozenset(path.name for path in paths if path.parent.name == task_name)

    def lock_task(self, task_name: str) -> ProcessFileLock:
        self._process.yield_turn()
        holder = self._machine.holders.get(task_name)
        if holder is not None and not holder.is_dead:
            raise DirectoryLocked(f"{task_name} is in use by {holder.name}")
        self._machine.holders[task_name] = self._process
        return SimLock(self._process, self._machine, task_name)


class SimLock(ProcessFileLock):
    def __init__(self, process: Process, machine: Machine, task: str) -> None:
        self._let_go: Callable[[], object] | None = lambda: machine.holders.pop(task, None)
        self._process = process

    def release(self) -> None:
        self._process.check_alive()
        let_go, self._let_go = self._let_go, None
        if let_go is not None:
            let_go()


class SimDisk:
    """Stands in for a `state.store.StoreDisk` of one process.

    `listen` hears of writes and clears.
    """

    def __init__(self, process: Process, machine: Machine, path: Path) -> None:
        process.yield_turn()
        database = machine.database(path)
        if database.is_open:
            raise DirectoryLocked(f"{path} is open elsewhere")
        database.owner = process
        self.database = database
        self._process = process
        self._world = machine.world
        self._loaded: dict[bytes, bytes | None] = {}  # not durable yet
        self._loaded_to: StoreCheckpoint | None = None
        process.at_death(self._died)

    def _died(self) -> None:
        """Keep, when the process dies, a part of a bulk load, and its checkpoint."""
        if self._loaded_to is not None and self._process.random.random() < 0.5:
            self._apply(self._loaded)
            self.database.checkpoint = self._loaded_to

    def get(self, key: bytes) -> bytes | None:
        self._check()
        if key in self._loaded:
            return self._loaded[key]
        return self.database.data.get(key)

    def range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        self._check()
        self._settle()
        inside = [
            entry
            for entry in self.database.data.items()
            if (first is None or entry[0] >= first) and (end is None or entry[0] < end)
        ]
        yield from sorted(inside, reverse=reverse)

    def raise_if_corrupted(self) -> None:
        """Raise nothing, as this disk is never damaged."""

    def approximate_count(self) -> int:
        return len(self.database.data)

    def read_checkpoint(self) -> StoreCheckpoint | None:
        self._check()
        return self._loaded_to or self.database.checkpoint

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        self._check()
        self._settle()
        process = self._process
        process.yield_turn()
        if process.dies_in_write >= 0:
            keys = list(changes)[: process.dies_in_write]
            self._apply({key: changes[key] for key in keys})
            self.database.is_torn = True
            self.database.torn_position = checkpoint.position
            self.database.torn_changes = {key: changes[key] for key in keys}
            process.kill()
        self._apply(changes)
        self.database.checkpoint = checkpoint
        self._world.report_write(self.database)

    def delete_range(self, first: bytes, end: bytes) -> None:
        self._check()
        self._settle()
        self._apply(dict.fromkeys(k for k in self.database.data if first <= k < end))

    def load_changes(
        self, changes: Iterable[tuple[bytes, bytes | None]], checkpoint: StoreCheckpoint
    ) -> None:
        self._check()
        self._loaded |= dict(changes)
        self._loaded_to = checkpoint
        self._process.yield_turn()

    def finish_load(self) -> None:
        self._check()
        self._process.yield_turn()
        self._settle()

    def clear_all_data(self) -> None:
        self._process.yield_turn()
        self._world.report_clear(self.database)
        self._loaded, self._loaded_to = {}, None
        self.database.data.clear()
        self.database.checkpoint = None
        self.database.is_corrupt = False

    def close(self) -> None:
        self._process.yield_turn()
        self._settle()
        self.database.owner = None

    def _settle(self) -> None:
        if self._loaded_to is not None:
            self._apply(self._loaded)
            self.database.checkpoint = self._loaded_to
            self._loaded, self._loaded_to = {}, None
            self._world.report_write(self.database)

    def _apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        for key, value in changes.items():
            if value is None:
                self.database.data.pop(key, None)
            else:
                self.database.data[key] = value

    def _check(self) -> None:
        self._process.check_alive()
        if self.database.is_corrupt:
            raise self._world.corrupt(self.database)
