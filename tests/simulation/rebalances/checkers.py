"""Check what holds of every rebalance, whatever fails, and of a change of a group at rest.

    owners     in one generation a task is one member's, and only that one commits it
    apart      a standby or warm-up is never assigned to the state directory of its active task
    versions   a task that ran with a store more doesn't run without it again, as long as its leader
               knows a member of the version with the store
    movement   a change of a group at rest moves what it has to, and nothing else
    idle       days that pass over a group at rest move nothing, and cost it no offset

That every task runs, and every standby is there, in bounded time is checked by `history`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from coordinator.errors import Code
from streams.membership.protocol import decode_assignment, decode_subscription
from streams.topology.build import Topology
from streams.topology.declared import declare_topology
from streams.topology.description import describe_topology
from tests.simulation.checkers.checker import Checker
from tests.simulation.network import Request
from tests.simulation.rebalances.topologies import build_version, list_tasks
from tests.simulation.rebalances.world import RebalanceWorld, Start, StartListener
from tests.simulation.runtime.checkers.owners import Owners as RuntimeOwners

JOIN_GROUP, SYNC_GROUP = 11, 14
TASKS = list_tasks()
LARGER = declare_topology(describe_topology(build_version(1))).fingerprint


class RebalanceChecker(Checker):
    world: RebalanceWorld


class Owners(RuntimeOwners):
    def _topology_of(self, client_id: str) -> Topology:
        return build_version(int(client_id.split()[0].partition("#")[2]) % 2)


class Apart(RebalanceChecker):
    name: ClassVar[str] = "apart"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._told: dict[int, dict[str, tuple[set[str], set[str]]]] = {}
        """The active tasks and the copies of each directory, by generation."""

    def handle_response(self, request: Request, response: Any) -> None:
        if request.api_key != SYNC_GROUP or Code(response.error_code) is not Code.NONE:
            return
        assigned = decode_assignment(response.assignment)
        slot = self.world.find_slot(request.given.group_instance_id)
        told = self._told.setdefault(request.given.generation_id, {})
        active, copies = told.setdefault(slot.directory.name, (set(), set()))
        active |= set(assigned.tasks)
        copies |= {*assigned.standby, *assigned.warmup}
        if active & copies:
            self.violated(
                f"generation {request.given.generation_id}: {slot.directory.name} has copies of "
                f"{sorted(active & copies)}, which run there"
            )


class Versions(RebalanceChecker, StartListener):
    name: ClassVar[str] = "versions"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._has_larger: dict[int, bool] = {}
        """True for each generation that has a member of the larger version."""
        self._last: dict[str, Start] = {}

    def handle_response(self, request: Request, response: Any) -> None:
        if request.api_key != JOIN_GROUP or Code(response.error_code) is not Code.NONE:
            return
        if response.leader != response.member_id or response.generation_id in self._has_larger:
            return
        topologies = [decode_subscription(each.metadata).topology for each in response.members]
        self._has_larger[response.generation_id] = any(
            each is not None and each.fingerprint == LARGER for each in topologies
        )

    def handle_start(self, start: Start) -> None:
        if not TASKS[start.task]:  # the versions don't differ there
            return
        last = self._last.get(start.task)
        if last is not None and start.generation < last.generation:
            return  # its session is over, and it does not know: it can't commit (see `Owners`)
        is_smaller = last is not None and last.version > start.version
        if is_smaller and self._has_larger.get(start.generation, False):
            self.violated(f"{start} follows {last}, and the group has the larger version")
        self._last[start.task] = start


def check_movement(
    world: RebalanceWorld,
    kind: str,
    instance_id: str,
    before: Mapping[str, list[str]],
    starts: list[Start],
) -> str:
    """Return what a change of a group at rest has moved that it should not have; empty if nothing.

    `before` are the runners of all tasks before it, `starts` what has begun to run since. A task
    that its own member starts again, as after a generation that it has missed, has not moved.
    """
    own = {task for task, runners in before.items() if instance_id in runners}
    moves = [start for start in starts if start.instance_id not in before[start.task]]
    home = {task: world.find_slot(runners[0]).directory for task, runners in before.items()}
    moved = {start.task for start in moves}
    stateful = {
        start.task
        for start in moves
        if TASKS[start.task]
        and world.find_slot(start.instance_id).directory is not home[start.task]
    }
    if kind == "leave":
        others = moved - own
        stateful -= own
        # A task goes first to who has most of its state; balance may then move another from there,
        # and stateless tasks even out what runs where until then.
        if len(stateful) > len(own) or len(others - stateful) > 2 * len(own) + 1:
            return f"{instance_id} leaves with {sorted(own)}, and these move: {sorted(others)}"
        return ""
    if kind == "restart":
        wrong = [s for s in starts if s.instance_id != instance_id or s.task not in own]
        lost = sorted(own - {start.task for start in starts})
        return f"{instance_id} restarts: {wrong} move, {lost} are lost" if wrong or lost else ""
    threads = len(world.list_able_slots())
    share, share_of_state = -(-len(before) // threads), -(-sum(TASKS.values()) // threads)
    # Stateless tasks, and tasks within a state directory, even out what runs where until the
    # others have warmed up.
    if len(stateful) > share_of_state + 1 or len(moved) > 3 * share + 1:
        return (
            f"{instance_id} joins, its share is {share}, {share_of_state} with state; the state of "
            f"{sorted(stateful)} moves, and these tasks: {sorted(moved)}"
        )
    return ""


def check_idle(lost: set[tuple[str, int]], starts: list[Start], *, has_rejoined: bool) -> str:
    """Return what days have done to a group at rest; empty if they have done nothing."""
    if lost:
        return f"the offsets of {sorted(lost)} are gone"
    if starts:
        return f"these have moved: {starts}"
    return "the group has rebalanced" if has_rejoined else ""


CHECKERS: tuple[type[Checker], ...] = (Owners, Apart, Versions)
