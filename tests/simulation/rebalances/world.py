"""Simulate members on shared state directories, and the broker with its group coordinator."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from coordinator.groups.classic.state import ClassicGroup
from coordinator.groups.streams.state import StreamsGroup
from coordinator.shard.placement import partition_for
from streams.settings.config import StreamsConfig
from tests.simulation.rebalances.directory import LightDirectory
from tests.simulation.rebalances.member import LightMember, Slot
from tests.simulation.rebalances.topologies import PARTITIONS, STORES, list_tasks
from tests.simulation.runtime.threaded import ThreadedWorld
from tests.simulation.runtime.topologies import APPLICATION
from tests.simulation.world import Setting

BROKER = {
    "auto_create_topics_enable": False,
    "group_min_session_timeout_ms": 500,
    "group_initial_rebalance_delay_ms": 50,
}
KEPT_FOR_A_WEEK = {"offsets_retention_minutes": 7 * 24 * 60}
"""Of brokers on which days pass; it is Kafka's default."""
TASKS = list_tasks()
STREAMS = "streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceSetting:
    """Holds what is the same for all of a history of rebalances."""

    world: Setting
    members: int = 30
    members_a_directory: int = 1
    standbys: int = 0
    warmups: int = 2
    is_transactional: bool = True
    records_max: int = 2_000  # that a store has when the history begins
    records_a_commit: int = 5
    commit_interval_ms: int = 1_000
    session_timeout_ms: int = 3_000
    heartbeat_interval_ms: int = 1_000
    max_poll_interval_ms: int = 5_000
    probing_interval_ms: int = 1_500
    preemption: float = 0.0
    protocol: str = "classic"
    """The protocol of the group: `classic` or `streams`."""
    initial_delay_ms: int = 0  # of a streams group, as the next
    assignment_interval_ms: int = 0


def _create_streams_settings(setting: RebalanceSetting) -> dict[str, int]:
    """Return the settings that a streams group has on its broker."""
    return {
        "group_streams_min_session_timeout_ms": 1,
        "group_streams_session_timeout_ms": setting.session_timeout_ms,
        "group_streams_min_heartbeat_interval_ms": 1,
        "group_streams_heartbeat_interval_ms": setting.heartbeat_interval_ms,
        "group_streams_num_standby_replicas": setting.standbys,
        "group_streams_initial_rebalance_delay_ms": setting.initial_delay_ms,
        "group_streams_assignment_interval_ms": setting.assignment_interval_ms,
    }


class Start(NamedTuple):
    """Represents the moment at which a task begins to run at a member."""

    task: str
    instance_id: str
    version: int
    generation: int


class RebalanceWorld(ThreadedWorld):
    """Represents the world of rebalances.

    `ends` are the ends of changelogs by task and store. `starts` are all starts of tasks so far.
    """

    def __init__(self, setting: RebalanceSetting, seed: int) -> None:
        broker = {**BROKER, **(KEPT_FOR_A_WEEK if setting.world.days else {})}
        if setting.protocol == STREAMS:
            broker |= _create_streams_settings(setting)
        super().__init__(setting.world, seed, PARTITIONS, broker, preemption=setting.preemption)
        self.rebalances = setting
        self.seed = seed
        self.trouble = setting.world.trouble
        self.is_over = False
        self.records_a_commit = setting.records_a_commit
        self.partition_counts = dict(PARTITIONS)
        self.starts: list[Start] = []
        random = Random(f"{seed} state")
        self.ends: dict[tuple[str, str], int] = defaultdict(int)
        for task, has_state in TASKS.items():
            if has_state:
                self.ends[task, STORES[0][0]] = random.randrange(setting.records_max)
        count = setting.members_a_directory
        directories = [
            LightDirectory(f"directory-{number}") for number in range(-(-setting.members // count))
        ]
        paces = [random.choice((0.3, 1.0, 5.0)) for _ in directories]
        self.slots = [
            Slot(self, number, directories[number // count], paces[number // count])
            for number in range(setting.members)
        ]
        self.config = StreamsConfig(
            bootstrap_servers="broker:9092",
            num_standby_replicas=setting.standbys,
            max_warmup_replicas=setting.warmups,
            acceptable_recovery_lag=100,
            probing_rebalance_interval_ms=setting.probing_interval_ms,
        )

    @property
    def alive(self) -> list[Slot]:
        return [slot for slot in self.slots if slot.is_alive]

    @property
    def members(self) -> list[LightMember]:
        """Return the members that live."""
        return [slot.member for slot in self.alive if slot.member is not None]

    def find_slot(self, instance_id: str) -> Slot:
        return next(slot for slot in self.slots if slot.instance_id == instance_id)

    def report_start(self, task: str, slot: Slot, generation: int) -> None:
        start = Start(task, slot.instance_id, slot.version, generation)
        self.starts.append(start)
        self.log("runs", *start)
        for checker in self.checkers:
            if isinstance(checker, StartListener):
                checker.handle_start(start)

    def find_runners(self) -> dict[str, list[str]]:
        """Return the members that run each task now."""
        runners: dict[str, list[str]] = {task: [] for task in TASKS}
        for member in self.members:
            for task in member.running:
                runners[task].append(member.slot.instance_id)
        return runners

    def find_followers(self) -> dict[str, list[str]]:
        """Return the members that follow each task now."""
        followers: dict[str, list[str]] = {task: [] for task in TASKS}
        for member in self.members:
            for task in member.following:
                followers[task].append(member.slot.instance_id)
        return followers

    def find_group(self) -> ClassicGroup | None:
        """Return the group as its coordinator has it; None if it has none."""
        shards = self.broker.coordinators.groups.shards
        return shards[partition_for(APPLICATION, len(shards))].state.classic.get(APPLICATION)

    def find_streams_group(self) -> StreamsGroup | None:
        """Return the streams group as its coordinator has it; None if it has none."""
        shards = self.broker.coordinators.groups.shards
        return shards[partition_for(APPLICATION, len(shards))].state.streams.get(APPLICATION)

    def find_committed(self) -> set[tuple[str, int]]:
        """Return the partitions of which the group has committed offsets."""
        shards = self.broker.coordinators.groups.shards
        offsets = shards[partition_for(APPLICATION, len(shards))].state.offsets
        return {*offsets.committed.get(APPLICATION, ())}

    def list_able_slots(self) -> list[Slot]:
        """Return the members to which tasks may go: those of the larger version, if there are."""
        larger = [slot for slot in self.alive if slot.version]
        return larger or self.alive

    def end(self) -> None:
        """End all threads."""
        self.is_over = True
        for slot in self.slots:
            if slot.member is not None:
                slot.member.process.thaw()
                slot.kill()


class StartListener:
    """Is told when a task begins to run; a checker overrides it."""

    def handle_start(self, start: Start) -> None:
        raise NotImplementedError
