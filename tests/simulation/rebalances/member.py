"""Run the product's membership and rebalances in a simulated process of one stream thread.

A turn of the thread is a turn of `StreamLoop` without records: keep the membership, start tasks,
let time pass, commit when it is due, and recover from errors as `ThreadRecovery` does.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import GenerationOver, OutcomeUnknown, TaskMigrated, UserError
from streams.membership.classic_member import ClassicProtocolMember
from streams.membership.connection import ConnectionLost
from streams.membership.group_member import MemberTimeouts
from streams.membership.group_offsets import try_commit_offsets
from streams.membership.streams.former_members import name_member
from streams.membership.streams.heartbeat_request import MemberMetadata
from streams.membership.streams.member import StreamsProtocolMember
from streams.membership.streams.topology_request import TopologyToSend
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.runtime.assigning.internal_topics import list_topic_settings
from streams.runtime.tasks.task_offsets import TaskOffsets
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.loop_collaborators import (
    create_rebalance,
    create_recovery,
    create_thread_tasks,
)
from streams.runtime.threads.rebalance import ThreadRebalance
from streams.runtime.threads.thread_dependencies import ThreadDependencies
from streams.runtime.threads.thread_tasks import ThreadTasks
from tests.simulation.rebalances.admin import create_admin
from tests.simulation.rebalances.directory import LightDirectory
from tests.simulation.rebalances.tasks import (
    LightExecutor,
    LightProducers,
    LightRestorer,
    LightTask,
    LightTaskCreator,
)
from tests.simulation.rebalances.topologies import STORES, build_version
from tests.simulation.runtime.clients.connection import SimConnection
from tests.simulation.runtime.host import SimHost
from tests.simulation.runtime.process import Process
from tests.simulation.runtime.topologies import APPLICATION
from tests.simulation.runtime.worker import WorkerHost

if TYPE_CHECKING:
    from tests.simulation.rebalances.world import RebalanceWorld

DIAL_TIMEOUT_S = 1.0
TURN_S = 0.25


class Slot:
    """Represents the place of a member, with its instance id and its state directory.

    `member` is its present or last life. `records_a_ms` is the pace of restores.
    """

    def __init__(
        self, world: RebalanceWorld, number: int, directory: LightDirectory, records_a_ms: float
    ) -> None:
        self.world = world
        self.number = number
        self.directory = directory
        self.records_a_ms = records_a_ms
        self.id = str(UUID(int=number + 1))
        self.instance_id = f"{APPLICATION}-{self.id}-0"
        self.lives = 0
        self.member: LightMember | None = None
        self.version = 0
        """The version of its present or last life."""
        self.freezes_at_join_ms = 0
        """The milliseconds for which the member is stopped before it sends its next JoinGroup."""

    @property
    def is_alive(self) -> bool:
        member = self.member
        return member is not None and not member.process.is_dead and member.process.is_running

    def start(self, version: int) -> None:
        """Start another life, if there is none."""
        if not self.is_alive and not self.world.is_over:
            self.version = version
            self.lives += 1
            self.member = LightMember(self, version, self.lives)

    def stop(self) -> None:
        """Stop the member as SIGTERM does: it leaves the group."""
        if self.is_alive:
            assert self.member is not None
            self.member.stop.set()

    def kill(self) -> None:
        if self.member is not None:
            self.member.process.kill()


class LightMember:
    """Represents one life of a member, a process with one stream thread."""

    def __init__(self, slot: Slot, version: int, life: int) -> None:
        world = self.world = slot.world
        self.slot = slot
        self.version = version
        self.topology = build_version(version)
        # The parity of the number tells the version, as `checkers.Owners` reads it.
        name = f"member-{slot.number}#{2 * life + version}"
        self.process = Process(world, name, Random(f"{world.seed} {name}"), world.trouble)
        self.stop = SimHost(self.process).create_event()
        self.tasks: ThreadTasks
        self.rebalance: ThreadRebalance
        self.membership: ClassicProtocolMember | StreamsProtocolMember
        self.failure: UserError | None = None
        self._commit_connection: SimConnection | None = None
        self.process.spawn("stream", self._main)

    # State, for checkers

    @property
    def is_at_rest(self) -> bool:
        """Return whether it has an assignment and runs it, and is about to do nothing else."""
        if not hasattr(self, "rebalance"):
            return False
        rebalance: Any = self.rebalance
        return (
            not self.membership.is_joining
            and not rebalance._must_join
            and rebalance._probing._due_at_s == float("inf")
            and self.tasks.are_all_running()
        )

    def describe(self) -> str:
        """Return what a failed wait shows of it."""
        if not hasattr(self, "rebalance"):
            return "it is starting"
        states = [f"{t.name} {t.state.name}" for t in self.tasks.by_name.values()]
        return f"{self.tasks.assignment}, {states}, joins: {self.membership.is_joining}"

    @property
    def running(self) -> set[str]:
        """Return the names of the tasks that run here."""
        if not hasattr(self, "tasks"):
            return set()
        return {task.name for task in self.tasks.list_tasks_in_state(TaskState.RUNNING)}

    @property
    def following(self) -> set[str]:
        """Return the names of the standby and warm-up tasks that are followed here."""
        if not hasattr(self, "tasks"):
            return set()
        copies = self.tasks.standby.by_name.values()
        return {task.name for task in copies if task.state is TaskState.STANDBY}

    def report_start(self, task: str) -> None:
        generation = self.membership.current_membership.generation
        self.world.report_start(task, self.slot, generation)

    # The thread

    def _main(self) -> None:
        self._create()
        try:
            while not self.stop.is_set():
                self.membership.mark_progress()
                self._recovery.run_with_recovery(self._take_turn)
            if not self.membership.is_generation_over:
                self._recovery.run_with_recovery(self._commit)
        except UserError as error:
            self.world.log("failed", self.process.name, error)
            self.failure = error
        self.tasks.close_tasks_without_commit()
        self.tasks.standby.close_tasks_without_commit()
        self.membership.leave_group()

    def _create(self) -> None:
        world, slot = self.world, self.slot
        host = self._host = WorkerHost(self.process, self._reached)
        timeouts = world.rebalances
        self._lock = host.create_lock
        assignor = StreamsPartitionAssignor(self.topology, world.config, create_admin(self.process))
        self.membership = (
            self._create_streams_member(assignor)
            if timeouts.protocol == "streams"
            else self._create_classic_member(assignor)
        )
        self._restorer = LightRestorer(self)
        dormant = slot.directory.find_dormant_tasks(STORES[self.version])
        given: Any = {
            "name": self.process.name,
            "group": APPLICATION,
            "member": self.membership,
            "consumer": None,
            "restorer": self._restorer,
            "offset_resetter": None,
            "admin": None,
            "task_creator": LightTaskCreator(self),
            "producers": LightProducers(is_transactional=timeouts.is_transactional),
            "stop": self.stop,
            "host": host,
            "commit_interval_ms": timeouts.commit_interval_ms,
            "poll_records_max": 1,
            "order_settings": None,
            "uncommitted_bytes_max": -1,
            "task_timeout_ms": 300_000,
            "on_state_change": lambda state: None,
            "on_commit_step": lambda step: None,
            "directory_id": slot.directory.name,
            "task_offsets": TaskOffsets(slot.directory, dormant),  # type: ignore[arg-type]
            "process_id": slot.id,
            "mend_topics_and_compare_inputs": assignor.mend_topics_and_compare_inputs,
            "adopt_assignment": assignor.adopt_assignment,
        }
        dependencies = ThreadDependencies(**given)
        self.tasks = create_thread_tasks(dependencies, restored_wait_s=TURN_S)
        self._executor = cast(Any, LightExecutor())
        self.tasks.executor = self._executor
        self.rebalance = create_rebalance(
            dependencies,
            self.tasks,
            commit_tasks=lambda _: self._commit(),
            assignment_wait_s=TURN_S,
        )
        self._recovery = create_recovery(dependencies, self.tasks)

    def _create_timeouts(self) -> MemberTimeouts:
        timeouts = self.world.rebalances
        return MemberTimeouts(
            timeouts.session_timeout_ms,
            timeouts.heartbeat_interval_ms,
            timeouts.max_poll_interval_ms,
            300_000,
        )

    def _create_classic_member(self, assignor: StreamsPartitionAssignor) -> ClassicProtocolMember:
        return ClassicProtocolMember(
            APPLICATION,
            self.slot.instance_id,
            self.topology.source_topics,
            assignor.declared,
            open_connection=lambda _: self._open(),
            assign=assignor.assign_group,
            timeouts=self._create_timeouts(),
            is_stopping=self.stop.is_set,
            host=self._host,
        )

    def _create_streams_member(self, assignor: StreamsPartitionAssignor) -> StreamsProtocolMember:
        start_id = str(self.slot.lives)
        sent = TopologyToSend(
            APPLICATION, assignor.declared, list_topic_settings(self.topology), -1
        )
        return StreamsProtocolMember(
            MemberMetadata(
                APPLICATION,
                name_member(self.slot.instance_id, start_id),
                self.slot.directory.name,
                sent,
                self.world.rebalances.max_poll_interval_ms,
            ),
            self.slot.instance_id,
            open_connection=lambda _: self._open(),
            fetch_partition_counts=create_admin(self.process).fetch_partition_counts,
            timeouts=self._create_timeouts(),
            host=self._host,
        )

    def _open(self) -> SimConnection:
        return SimConnection(self.process, self._lock(), DIAL_TIMEOUT_S)

    def _reached(self, _: str) -> None:
        """Stop the process for a while, if a plan says so, when it is about to join."""
        for_ms, self.slot.freezes_at_join_ms = self.slot.freezes_at_join_ms, 0
        if for_ms:
            self.process.freeze(for_ms)
            self.process.yield_turn()

    def _take_turn(self) -> None:
        self._restorer.advance()
        self.rebalance.maintain_membership()
        if self.tasks.assignment is None:
            return
        if not self.tasks.are_all_running() and not self.membership.is_generation_over:
            self.tasks.start_assigned_tasks()
        self.tasks.standby.follow_assigned_tasks(may_create=self.tasks.are_all_running())
        self.stop.wait(TURN_S)
        self._executor.process()
        is_due = self._host.monotonic_s() >= self.tasks.commit_deadline_s
        if is_due and self.rebalance.can_commit:
            self._commit()

    def _commit(self) -> None:
        """Commit the offsets of all tasks that did something, as a transaction or without.

        The generation is checked alike (KIP-447). Raises: GenerationOver or TaskMigrated for a
        refusal, OutcomeUnknown for a lost answer.
        """
        self.tasks.schedule_commit()
        dirty: list[LightTask] = [t for t in self._executor.tasks.values() if t.commit_needed]
        if not dirty:
            return
        offsets = [(p, OffsetAndMetadata(1, "")) for task in dirty for p in task.partitions]
        is_transactional = self.tasks.is_transactional
        try:
            if not is_transactional:
                accepted = self.membership.try_commit_offsets(offsets)
            else:
                accepted = self._commit_in_generation(offsets)
        except ConnectionLost as error:
            self._commit_connection = None
            raise OutcomeUnknown(f"commit offsets: {error}") from error
        if not accepted:
            kind = GenerationOver if is_transactional else TaskMigrated
            raise kind("the group has moved on: offsets were refused")
        for task in dirty:
            task.commit()
        self._recovery.clear_failure()

    def _commit_in_generation(self, offsets: list[tuple[Partition, OffsetAndMetadata]]) -> bool:
        """Commit in the generation that a transaction would name; return False for a refusal."""
        with self.membership.hold_membership():
            generation, member_id = self.rebalance.require_commit_membership()
            if self._commit_connection is None:
                self._commit_connection = self._open()
            return try_commit_offsets(
                self._commit_connection,
                APPLICATION,
                generation,
                member_id,
                self.membership.static_instance_id,
                offsets,
            )
