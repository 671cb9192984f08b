"""Check that a store equals its changelog up to its checkpoint (with exactly once).

It has the committed records, all of them, and nothing else. It never goes back, is never emptied
without a reason, and is caught up from its checkpoint.

What a store holds is noted at each write, and judged at the end, when it is certain what of the
changelog was committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams.graph.nodes import StoreKind
from streams.runtime.tasks.store_opening import open_store
from tests.simulation.network import Request
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.machine import Database
from tests.simulation.runtime.topologies import changelog_of
from tests.simulation.truth import Truth

FETCH = 1


class Snapshot(NamedTuple):
    at_ms: float
    who: str
    position: int
    data: dict[bytes, bytes]
    torn_changes: dict[bytes, bytes | None]
    """The part of a write that a crash cut, of a commit that comes after `position`."""


class Stores(RuntimeChecker):
    name: ClassVar[str] = "stores"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._snapshots: dict[Path, list[Snapshot]] = {}
        self._is_off = not self.world.runtime.is_exactly_once  # zombies write to changelogs there
        self._judged: list[tuple[Path, Snapshot]] = []  # of stores that are gone
        topology = self.world.topology()
        self._specs = {spec.name: spec for sub in topology.subtopologies for spec in sub.stores}

    def handle_request(self, request: Request) -> None:
        """Check that a restore, or a standby, reads on from the checkpoint."""
        if request.api_key != FETCH:
            return
        if "restore" not in request.client_id and "standby" not in request.client_id:
            return
        life = request.client_id.split()[0]
        for topic in request.given["topics"]:
            for part in topic["partitions"]:
                self._check_begin(request, life, topic["topic"], part)

    def _check_begin(
        self, request: Request, life: str, changelog: str, part: dict[str, int]
    ) -> None:
        number, offset = part["partition"], part["fetch_offset"]
        for database in self.world.databases:
            owner, checkpoint = database.owner, database.checkpoint
            if owner is None or owner.name != life or checkpoint is None or database.is_corrupt:
                continue
            if changelog_of(database.path.name) != changelog:
                continue
            snapshots = self._snapshots.get(database.path)
            if snapshots and snapshots[-1].at_ms > request.sent_at_ms:
                continue  # it was in transit while the store advanced
            if int(database.task.split("_")[1]) == number and offset < checkpoint.position:
                self.violated(
                    f"{database.path} is at {checkpoint.position}, and read from {offset}"
                )

    def handle_write(self, database: Database) -> None:
        if database.is_global:
            return  # see Globals
        assert database.checkpoint is not None
        assert database.owner is not None
        snapshots = self._snapshots.setdefault(database.path, [])
        position = database.checkpoint.position
        if snapshots and position < snapshots[-1].position:
            self.violated(f"{database.path} goes back from {snapshots[-1].position} to {position}")
        elapsed_ms = self.world.loop.elapsed_ms
        # A restore that goes on from the crash has not come to that commit yet.
        torn = database.torn_changes if position < database.torn_position else {}
        snapshots.append(
            Snapshot(elapsed_ms, database.owner.name, position, dict(database.data), torn)
        )

    def handle_clear(self, database: Database) -> None:
        if database.is_global:
            return
        if not database.is_corrupt:
            self.violated(f"{database.path} is emptied, and nothing was wrong with it")
        self.handle_deletion(database)

    def handle_deletion(self, database: Database) -> None:
        """Expect a new store, as the deleted one's path is written next."""
        self._judged += [(database.path, each) for each in self._snapshots.pop(database.path, ())]

    def check_at_rest(self) -> None:
        if self._is_off:
            return
        open_ones = [(path, each) for path, all_ in self._snapshots.items() for each in all_]
        for path, snapshot in self._judged + open_ones:
            number = int(path.parent.name.split("_")[1])
            self._check(path, snapshot, self.world.truths[changelog_of(path.name), number])

    def _check(self, path: Path, snapshot: Snapshot, truth: Truth) -> None:
        spec = self._specs[path.name]
        if spec.kind is StoreKind.WINDOW and self.world.runtime.kind == "outer":
            return  # what has expired is swept a little at a time
        disk = MemoryDisk()
        committed = truth.committed(snapshot.position)
        log = [(e.key or b"", e.value or None, max(e.time_ms, 0)) for e in committed]
        if log:
            open_store(spec, disk).replay_changelog(log, StoreCheckpoint(snapshot.position, ""))
        replayed = dict(disk.range(None, None))
        found = snapshot.data
        if found != replayed:
            torn = snapshot.torn_changes
            keys = [
                k
                for k in {**found, **replayed}
                if found.get(k) != replayed.get(k) and (k not in torn or found.get(k) != torn[k])
            ]
            if not keys:
                return
            shown = {k: (found.get(k, b"")[-30:], replayed.get(k, b"")[-30:]) for k in keys[:2]}
            self.violated(
                f"{path} of {snapshot.who} at {snapshot.at_ms:.0f} ms is not its changelog up to "
                f"{snapshot.position}; found and replayed: {shown}"
            )
