"""Run the product's stream threads in a simulated process, and restart it after each end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from state.replica import TopicReplica
from streams.errors import UserError
from streams.membership.broker_outage import BrokerOutage
from streams.runtime.clients import KafkaClientSupplier
from streams.runtime.global_tables.copied_records import RecordCopier
from streams.runtime.global_tables.global_replicas import open_replicas
from streams.runtime.global_tables.tables import GlobalTables
from streams.runtime.offsets.offset_metadata import METADATA_BYTES_MAX
from streams.runtime.tasks.task_offsets import TaskOffsets
from streams.runtime.threads.assembly import create_stream_loop
from streams.runtime.threads.commit import CommitStep
from streams.runtime.threads.loop import StreamLoop
from streams.runtime.threads.thread_state import create_thread_state_machine
from streams.runtime.threads.worker_resources import WorkerResources
from tests.simulation.runtime.clients.connection import SimConnection
from tests.simulation.runtime.host import SimHost
from tests.simulation.runtime.machine import Machine, SimDirectory
from tests.simulation.runtime.process import Process
from tests.simulation.runtime.threads import SimThread
from tests.simulation.runtime.topologies import APPLICATION

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld

DIAL_TIMEOUT_S = 1.0
JOINING = "JOINING"
"""The moment at which a member is about to send JoinGroup, beside its stream thread."""


class WorkerHost(SimHost):
    """Represents the host of a worker, which tells when a member is about to join its group."""

    def __init__(self, process: Process, reached: Callable[[str], None]) -> None:
        super().__init__(process)
        self._reached = reached

    def spawn_thread(self, name: str, target: Callable[[], None]) -> SimThread:
        def join() -> None:
            self._reached(JOINING)
            target()

        return super().spawn_thread(name, join if name.endswith("-join") else target)


class SimWorker:
    """Represents a worker slot on a machine, whose `process` is its present or last life."""

    def __init__(self, world: RuntimeWorld, number: int, machine: Machine) -> None:
        self.world = world
        self.number = number
        self.machine = machine
        self.id = str(UUID(int=number + 1))
        self.lives = 0
        self.process: Process | None = None
        self.loops: list[StreamLoop] = []
        """The loops of all lives."""
        self.failures: list[UserError] = []
        self.plans: list[tuple[CommitStep | str, Callable[[Process], None]]] = []
        """Actions on it when it next reaches a step, or a state."""
        self.back_after_ms = -1
        """The time after which it is restarted when killed; -1: only by another step."""
        self._stop: Any = None

    @property
    def is_alive(self) -> bool:
        process = self.process
        return process is not None and not process.is_dead and process.is_running

    def start(self) -> None:
        """Start another life, if there is none."""
        if self.is_alive:
            return
        self.lives += 1
        world = self.world
        name = f"worker-{self.number}#{self.lives}"
        random = Random(f"{world.seed} {name}")
        process = self.process = Process(world, name, random, world.trouble)
        self._stop = SimHost(process).create_event()
        process.at_death(self._died)
        process.spawn("main", self._main)

    def _died(self) -> None:
        if self.back_after_ms >= 0:
            self.world.loop.after_ms(self.back_after_ms, self._start_again)

    def _start_again(self) -> None:
        if not self.world.is_over:
            self.start()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def stop(self) -> None:
        """Stop the worker as SIGTERM does."""
        if self.is_alive:
            self._stop.set()

    def _main(self) -> None:
        world, process = self.world, self.process
        assert process is not None
        host = WorkerHost(process, self._reached)
        config = world.config_of(self.lives)
        topology = world.topology(self.lives)
        clients = KafkaClientSupplier(APPLICATION, config, "broker:9092")
        directory = SimDirectory(process, self.machine)
        tables = topology.global_tables
        replicas = open_replicas(
            tables, lambda store: directory.build_global_store_path(self.number, store), None
        )
        admin = clients.create_admin()
        copies = GlobalTables(
            tables,
            replicas,
            create_consumer=lambda: clients.create_restore_consumer("global"),
            copier=RecordCopier(
                config.handlers,
                create_producer=lambda: clients.create_plain_producer("global", DIAL_TIMEOUT_S),
                list_topics=lambda: admin.fetch_partition_counts().keys(),
                host=host,
            ),
            admin=admin,
            host=host,
        )
        outage = BrokerOutage(
            "broker:9092",
            host,
            lambda _: SimConnection(process, host.create_lock(), DIAL_TIMEOUT_S),
            self._stop.is_set,
            give_up_after_s=1.5,
        )
        worker = WorkerResources(
            process_id=self.id,
            topology=topology,
            config=config,
            clients=clients,
            directory=directory,
            directory_id=str(self.machine.path),
            task_offsets=TaskOffsets(directory),
            host=host,
            open_connection=outage.open_connection,
            outage=outage,
            stop=self._stop,
            metadata_bytes_max=METADATA_BYTES_MAX,
            global_tables=copies if tables else None,
        )
        loops = [
            create_stream_loop(
                worker,
                number,
                on_state_change=create_thread_state_machine(
                    f"thread {number}", self._reached
                ).change_state,
                on_commit_step=self._reached,
            )
            for number in range(config.num_stream_threads)
        ]
        self.loops += loops
        threads = [
            process.spawn(f"stream-{number}", partial(self._run, worker, loop))
            for number, loop in enumerate(loops)
        ]
        if tables:
            process.spawn("global-tables", partial(self._copy, copies, replicas, threads))

    def _copy(
        self, copies: GlobalTables, replicas: Mapping[str, TopicReplica], readers: list[SimThread]
    ) -> None:
        """Copy the global tables until the end, and close the copies after their readers."""
        try:
            copies.copy_until_stopped(self._stop)
        except UserError as error:
            self.failures.append(error)
            self._stop.set()
        for thread in readers:
            thread.join()
        for replica in replicas.values():
            replica.close()

    def _run(self, worker: WorkerResources, loop: StreamLoop) -> None:
        try:
            if worker.global_tables is None or worker.global_tables.wait_until_caught_up(
                worker.stop
            ):
                loop.run_until_stopped()
        except UserError as error:
            self.world.log("failed", self.process and self.process.name, error)
            self.failures.append(error)
            self._stop.set()

    def _reached(self, step: CommitStep | str) -> None:
        process = self.process
        assert process is not None
        process.yield_turn()
        self.world.log(process.name, step)
        due = [plan for at, plan in self.plans if at == step]
        self.plans = [each for each in self.plans if each[0] != step]
        for plan in due:
            plan(process)
        process.yield_turn()
