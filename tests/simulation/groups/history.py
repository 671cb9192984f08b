"""Run histories of groups, in which members and broker fail, and check that all settle."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from coordinator.groups.classic.state import ClassicGroupPhase
from tests.simulation.checkers.checker import Checker
from tests.simulation.groups.checkers import CHECKERS, Kept
from tests.simulation.groups.members.admin import Admin
from tests.simulation.groups.members.classic import ClassicMember
from tests.simulation.groups.members.host import Host
from tests.simulation.groups.scenario import (
    Action,
    Create,
    Delete,
    DeleteGroup,
    DeleteOffsets,
    Enlarge,
    GroupScenario,
    Hang,
    Haunt,
    Kill,
    Leave,
    OfAdmin,
    OfHost,
    Resign,
    Start,
    StartAll,
    Switch,
    Wait,
    Want,
)
from tests.simulation.groups.settled import unsettled
from tests.simulation.groups.world import GroupWorld
from tests.simulation.history import Bug, History, no_bug
from tests.simulation.steps import DAY_MS, PassDays, inject_fault
from tests.simulation.world import Violation

SETTLING_MS = 60_000.0  # at most, once nothing goes wrong any more
LOOK_MS = 500.0
QUIET_MS = 5_000.0  # in which nothing changes that has settled
PAUSE_MS = 20_000.0  # at most, for groups to come to rest before days pass
CHECKED_MS = 1_000.0  # for the broker to find what has expired


class GroupHistory(History):
    """Represents one run of a scenario of groups."""

    world: GroupWorld

    def __init__(
        self,
        scenario: GroupScenario,
        bug: Bug = no_bug,
        checkers: Sequence[type[Checker]] = CHECKERS,
    ) -> None:
        setting = scenario.setting
        world = GroupWorld(setting.world, scenario.seed, setting.broker_settings)
        super().__init__(world, bug)
        self.scenario = scenario
        self.checkers = world.checkers = [checker(world) for checker in checkers]
        for number in range(setting.hosts):
            profile, interest = setting.profile(number, scenario.seed)
            world.hosts.append(Host(world, profile, interest, str(scenario.seed)))
        self._admin = Admin(world, f"{scenario.seed} admin")
        self._turn: Any = None  # what the administrator does last, of what there is to do

    def _run(self) -> None:
        world = self.world
        with world.raise_violations():
            world.start_broker()
        self._advance(10)
        for step in self.scenario.steps:
            self._advance(step.gap_ms)
            self._take(step.action)
        self._heal()
        self._settle()
        self._change_once_more()
        self._settle()
        if world.loop.failures:
            raise Violation("broker", world.loop.failures[0])
        for checker in world.checkers:
            checker.check_at_rest()

    def _settle(self) -> None:
        """Wait until all is at rest and stays so; a checker reports if it isn't in the end."""
        self._rest()
        if unsettled(self.world) and self._wake_leaders():
            self._rest()
        epochs = self._epochs()
        self._advance(QUIET_MS)
        if not unsettled(self.world) and epochs != self._epochs():
            raise Violation("convergence", f"settled at {epochs}, but goes on: {self._epochs()}")

    def _rest(self) -> None:
        for _ in range(int(SETTLING_MS / LOOK_MS)):
            self._advance(LOOK_MS)
            if self._is_done and not unsettled(self.world):
                break

    def _wake_leaders(self) -> bool:
        """Restart the leader of a group that a downgrade left Stable; return if one was found."""
        found = False
        for host in self.world.hosts:
            group = self.world.shard(host.group_id).state.classic.get(host.group_id)
            member = host.member
            if group is None or not isinstance(member, ClassicMember) or member.leads:
                continue
            if group.phase is ClassicGroupPhase.STABLE and group.leader == member.member_id:
                host.start()
                found = True
        return found

    @property
    def _is_done(self) -> bool:
        """Return whether the administrator has nothing left to do."""
        return self._turn is None or self._turn.done()

    def _change_once_more(self) -> None:
        """Make the last and only change: each topic gets one more partition, or a member leaves."""
        world = self.world
        if self.scenario.seed % 2 == 0:
            for topic in world.broker.topics if world.is_listening else ():
                if not topic.is_internal:
                    self._take(Enlarge(topic.name, len(topic.partitions) + 1))
        else:
            living = [host for host in world.hosts if host.member is not None]
            for host in living[:1]:
                host.leave()

    def _epochs(self) -> dict[str, int]:
        world = self.world
        return {host.profile.name: host.member.epoch for host in world.hosts if host.member}

    def _heal(self) -> None:
        """Stop all faults; what is down comes back by itself."""
        world = self.world
        world.disk.heal()
        self._admin.session.connection.trouble = 0.0
        for host in world.hosts:
            for life in host.lives:
                life.heal()

    def _take(self, action: Action) -> None:
        world = self.world
        match action:
            case Start() | Kill() | Leave() | Hang() | Want() | Haunt() | Switch():
                self._take_of_host(action, world.hosts[action.host])
            case Create() | Enlarge() | Delete() | DeleteGroup() | DeleteOffsets():
                self._turn = world.spawn(_behind(self._turn, self._administer(action)))
            case StartAll():
                for host in world.hosts:
                    if host.member is None:
                        host.start()
            case Wait(for_ms):
                self._advance(for_ms)
            case PassDays(days):
                self._pass_days(days)
            case Resign(shard, for_ms):
                world.resign(shard, for_ms)
            case fault:
                inject_fault(world, fault)

    def _pass_days(self, days: int) -> None:
        """Let days pass once all is at rest, if that comes, or in the middle of what happens."""
        world = self.world
        for _ in range(int(PAUSE_MS / LOOK_MS)):
            if self._is_done and not unsettled(world):
                break
            self._advance(LOOK_MS)
        world.disk.failing = 0
        watching = [each for each in world.checkers if isinstance(each, Kept)]
        for checker in watching:
            checker.begin_days()
        world.loop.passed_ms += days * DAY_MS
        world.log("passed", days)
        self._advance(CHECKED_MS)
        with world.raise_violations():
            for checker in watching:
                checker.end_days(days)

    def _take_of_host(self, action: OfHost, host: Host) -> None:
        match action:
            case Start():
                host.start()
            case Kill():
                host.kill()
            case Leave():
                host.leave()
            case Hang(_, for_ms):
                host.hang(for_ms)
            case Want(_, interest):
                host.want(interest)
            case Haunt():
                host.haunt()
            case Switch():
                host.switch()

    def _administer(self, action: OfAdmin) -> Coroutine[Any, Any, None]:
        match action:
            case Create(topic, partitions):
                return self._admin.create(topic, partitions)
            case Enlarge(topic, partitions):
                return self._admin.enlarge(topic, partitions)
            case Delete(topic):
                return self._admin.delete(topic)
            case DeleteGroup(group_id):
                return self._admin.delete_group(group_id)
            case DeleteOffsets(group_id, topic):
                return self._admin.delete_offsets(group_id, topic)


async def _behind(before: Any, work: Coroutine[Any, Any, None]) -> None:
    try:
        if before is not None:
            await before
    except BaseException:
        work.close()
        raise
    await work
