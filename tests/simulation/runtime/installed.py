"""Replace the product's clients and disks by those of a world while a history runs.

The seam is confluent-kafka's surface and the disk's contract: what the runtime makes of them is the
product's own. Whoever makes a client or a disk gets one of the process whose thread is running.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import state.replica
import streams.runtime.clients.admin_calls
import streams.runtime.clients.consumer
import streams.runtime.clients.factory
import streams.runtime.clients.producer
import streams.runtime.clients.retrying
import streams.runtime.global_tables.global_replicas
import streams.runtime.tasks.store_disks
from coordinator.assignors.tasks import AssignmentInput
from coordinator.errors import Code
from coordinator.local_markers import LocalMarkers
from state.rocksdb import RocksDisk
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.runtime.assigning import assignment, group_assignment
from tests.simulation.bugs import replaced
from tests.simulation.runtime.clients.admin import SimAdminClient
from tests.simulation.runtime.clients.consumer import SimConsumer
from tests.simulation.runtime.clients.producer import SimProducer
from tests.simulation.runtime.machine import SimDisk
from tests.simulation.runtime.world import RuntimeWorld

MADE_IN = {
    "Producer": (streams.runtime.clients.producer, streams.runtime.clients.factory),
    "Consumer": (streams.runtime.clients.consumer,),
    "AdminClient": (streams.runtime.clients.admin_calls,),
}
_LOCK_POLL_S = 0.001
"""How long a simulated thread waits, by the simulation's time, before it asks for a lock again."""


@contextmanager
def installed(world: RuntimeWorld) -> Iterator[None]:
    """Install a world's clients and disks in the product until the context ends."""

    def client(kind: Any) -> Any:
        def make(settings: dict[str, Any], logger: Any = None) -> Any:
            return kind(world.running().process, settings)

        return make

    kinds: dict[str, Any] = {
        "Producer": SimProducer,
        "Consumer": SimConsumer,
        "AdminClient": SimAdminClient,
    }

    def disk(path: Path, *_: Any, **__: Any) -> SimDisk:
        process = world.running().process
        return SimDisk(process, world.machine_of(process), path)

    with ExitStack() as stack:
        for name, modules in MADE_IN.items():
            for module in modules:
                stack.enter_context(replaced(module, name, partial(_instead, client(kinds[name]))))
        for opens in (
            streams.runtime.tasks.store_disks,
            streams.runtime.global_tables.global_replicas,
        ):
            stack.enter_context(replaced(opens, "RocksDisk", partial(_instead, disk)))
        stack.enter_context(replaced(RocksDisk, "__init__", partial(_instead, _refuse_database)))
        for measures in (streams.runtime.clients.admin_calls, streams.runtime.clients.retrying):
            stack.enter_context(replaced(measures, "time", partial(_instead, SimTime(world))))
        lock = partial(SimLock, world)
        stack.enter_context(replaced(state.replica, "Lock", partial(_instead, lock)))
        stack.enter_context(
            replaced(LocalMarkers, "try_write_marker", partial(_slow_markers, world))
        )
        stack.enter_context(
            replaced(group_assignment, "assign_tasks_and_replicas", partial(_unsteady, world))
        )
        stack.enter_context(
            replaced(
                assignment.StreamsPartitionAssignor,
                "assign_group",
                partial(_with_standbys, world),
            )
        )
        yield


def _refuse_database(disk: RocksDisk, *_: Any, **__: Any) -> None:
    """Fail: a real database outlives the history, and no crash takes back what it holds."""
    raise AssertionError("a simulated process has opened a real database: replace what opened it")


class SimTime:
    """Stands in for the module `time` where the product measures how long it waits for answers."""

    def __init__(self, world: RuntimeWorld) -> None:
        self._world = world

    def monotonic(self) -> float:
        return self._world.loop.time()

    def sleep(self, seconds: float) -> None:
        self._world.running().wait(lambda wake: None, seconds)


class SimLock:
    """Represents a lock for which a simulated thread waits, so that its owner's turn comes."""

    def __init__(self, world: RuntimeWorld) -> None:
        self._world = world
        self._is_held = False

    def __enter__(self) -> None:
        while self._is_held:
            self._world.running().wait(lambda wake: None, _LOCK_POLL_S)
        self._is_held = True

    def __exit__(self, *error: object) -> None:
        self._is_held = False


def _slow_markers(world: RuntimeWorld, original: Any) -> Any:
    """Delay markers, so that a transaction's offsets may precede its output, as on a cluster.

    The coordinator sends a marker again that was refused so.
    """
    random = Random(f"{world.seed} markers")

    def code_of(self: LocalMarkers, partition: tuple[str, int], ended: Any) -> Code:
        is_slow = random.random() < world.slow_markers
        if is_slow and partition[0] != "__consumer_offsets":
            return Code.NOT_LEADER_OR_FOLLOWER
        code: Code = original(self, partition, ended)
        return code

    return code_of


def _unsteady(world: RuntimeWorld, original: Any) -> Any:
    """Shuffle the owners of tasks now and then, as a leader may assign as it likes."""
    random = Random(f"{world.seed} leader")

    def assign_tasks_and_replicas(state: AssignmentInput, configs: Any) -> Any:
        if random.random() < world.runtime.unsteady:
            owners = list(state.owners.values())
            random.shuffle(owners)
            state = state._replace(owners=dict(zip(state.owners, owners, strict=True)))
        return original(state, configs)

    return assign_tasks_and_replicas


def _with_standbys(world: RuntimeWorld, original: Any) -> Any:
    """Give tasks standbys and warm-ups on other machines than their own, as a seed says."""
    random = Random(f"{world.seed} standbys")

    def assign_group(
        self: Any, members: Mapping[str, SubscriptionInfo]
    ) -> dict[str, AssignmentInfo]:
        assigned: dict[str, AssignmentInfo] = original(self, members)
        if not world.runtime.standbys:
            return assigned
        given = dict(assigned)
        for owner, mine in assigned.items():
            for task in mine.tasks:
                taken = {members[owner].directory}
                for member in random.sample(sorted(given), len(given)):
                    if members[member].directory in taken:
                        continue
                    if random.random() >= world.runtime.standbys:
                        continue
                    taken.add(members[member].directory)
                    now = given[member]
                    now = now._replace(following=(*now.following, *mine.partitions))
                    given[member] = (
                        now._replace(standby=(*now.standby, task))
                        if random.random() < 0.5
                        else now._replace(warmup=(*now.warmup, task))
                    )
        return given

    return assign_group


def _instead(replacement: Any, original: Any) -> Any:
    return replacement
