"""Assemble one stream thread from its dependencies.

The real machine and a simulated one differ in what they pass in, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from state.cache import ObjectCache
from state.directory import StateDirectory
from state.rocksdb import MemoryBudget
from streams.config import StreamsConfig
from streams.ledger import ledger_topic
from streams.membership.classic import ClassicMember
from streams.membership.connection import Dial
from streams.membership.offsets import offsets_of_group
from streams.membership.protocol import Subscribed
from streams.membership.terms import Timeouts
from streams.membership.transactions import identity_of
from streams.runtime.assignment import Planner, name_task
from streams.runtime.clients import Admin, Clients
from streams.runtime.commit import Step
from streams.runtime.counters import Counters
from streams.runtime.failures import Failures
from streams.runtime.globals import GlobalTables
from streams.runtime.host import Event, Host
from streams.runtime.ledger import Ledger
from streams.runtime.loop import StreamLoop
from streams.runtime.opening import Opener
from streams.runtime.parts import Parts
from streams.runtime.producers import Producers
from streams.runtime.progress import RestoreListener
from streams.runtime.purge import Purge
from streams.runtime.queues import Order
from streams.runtime.resetting import Resetting
from streams.runtime.restorer import Restorer
from streams.runtime.task import Task
from streams.topology.build import Topology

_REASON_MAX = 500
_RESTORE_ANSWER_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Holds what the threads of one worker share: configuration, clients, directory and machine.

    `process_id` outlives the process: see `ProcessSlot`.
    """

    id: str
    topology: Topology
    config: StreamsConfig
    clients: Clients
    directory: StateDirectory
    host: Host
    dial: Dial
    stop: Event
    metadata_bytes_max: int
    """The brokers' limit in bytes for the metadata of an offset."""
    memory: MemoryBudget | None = None
    """The memory of RocksDB, for all stores of the process."""
    restore_listener: RestoreListener | None = None
    globals: GlobalTables | None = None


def _ledger(worker: Worker) -> Ledger | None:
    """Create the writer of the ledger, None where the setting is off."""
    if not worker.config.ledger:
        return None
    topic = ledger_topic(worker.topology.application_id)
    return Ledger(topic, lambda transactional_id: identity_of(worker.dial, transactional_id))


def _purge(worker: Worker, admin: Admin) -> Purge:
    """Create the purger of the application's repartition topics."""
    return Purge(
        worker.topology.application_id,
        worker.topology.repartition_topics,
        admin,
        lambda group, partitions: offsets_of_group(worker.dial, group, partitions),
        interval_ms=worker.config.repartition_purge_interval_ms,
        host=worker.host,
    )


def _restorer(worker: Worker, name: str, reached: Callable[[Step], None]) -> Restorer[Task]:
    """Create the restorer of a thread, with a consumer and an admin client of its own."""
    return Restorer(
        name,
        worker.clients.restore_consumer(name),
        # The restorer retries by itself; a rebalance, or a stop, waits for its open requests.
        worker.clients.admin(timeout_s=_RESTORE_ANSWER_S),
        worker.host,
        transactions=worker.config.exactly_once,
        timeout_ms=worker.config.task_timeout_ms,
        beside=True,
        listener=worker.restore_listener,
        reached=lambda: reached(Step.RESTORING),
    )


def stream_loop(
    worker: Worker,
    number: int,
    *,
    changed: Callable[[str], None],
    reached: Callable[[Step], None],
    replaced: Callable[[Exception], bool] = lambda error: False,
) -> StreamLoop:
    """Create the loop of thread `thread_number`, with clients and a membership of its own."""
    topology, config, clients = worker.topology, worker.config, worker.clients
    admin = clients.admin()
    counters = Counters()
    planner = Planner(topology, config, admin)
    member = _member(worker, number, planner)
    resetting = Resetting(
        admin,
        worker.host,
        auto_offset_reset=config.auto_offset_reset,
        offset_out_of_range=config.offset_out_of_range,
        internal=topology.repartition_topics,
    )
    return StreamLoop(
        Parts(
            name=f"thread {number}",
            group=topology.application_id,
            member=member,
            consumer=clients.consumer(f"consumer-{number}"),
            restorer=_restorer(worker, f"restore-{number}", reached),
            resetting=resetting,
            admin=admin,
            opener=Opener(
                topology,
                worker.directory,
                resetting,
                worker.host,
                committed_offsets=member.committed_offsets,
                memory=worker.memory,
                cache=ObjectCache(config.cache_max_bytes // config.num_stream_threads),
                storing=lambda: reached(Step.STORING),
                metadata_bytes_max=worker.metadata_bytes_max,
                global_views=None if worker.globals is None else worker.globals.views(),
                failures=Failures(
                    config.handlers,
                    counters=counters,
                    monotonic_s=worker.host.monotonic_s,
                    topics=lambda: admin.partition_counts().keys(),
                ),
            ),
            producers=Producers(
                clients.producer,
                guarantee=config.processing_guarantee,
                application=topology.application_id,
                thread=member.instance_id,
                is_member=member.is_current,
                name_task=partial(name_task, topology),
            ),
            stop=worker.stop,
            host=worker.host,
            commit_every_ms=config.commit_every_ms,
            records_max=config.max_poll_records,
            order=Order(config.max_task_idle_ms, config.buffered_records_per_partition),
            uncommitted_bytes_max=_share(config),
            task_timeout_ms=config.task_timeout_ms,
            changed=changed,
            reached=reached,
            ledger=_ledger(worker),
            committed=_purge(worker, admin).committed,
            counters=counters,
            inputs_changed=planner.is_outdated,
            adopt=planner.adopt,
            inputs_every_ms=config.metadata_max_age_ms,
            replaced=replaced,
        )
    )


def _share(config: StreamsConfig) -> int:
    """Return the bytes of uncommitted writes that one thread may hold; negative means any."""
    given = config.statestore_uncommitted_max_bytes
    return given // config.num_stream_threads if given >= 0 else given


def announce_shutdown(worker: Worker, number: int, reason: str) -> None:
    """Tell every member of the group to end, by joining it once more as thread `thread_number`.

    Source: Kafka Streams' SHUTDOWN_REQUESTED. Raises StreamsError where the group can't be reached
    for `task_timeout_ms`.
    """
    member = _member_alone(worker, number)
    try:
        member.join(Subscribed((), reason[:_REASON_MAX]))
    finally:
        member.leave()


def give_up_place(worker: Worker, number: int) -> None:
    """Leave the group for an ended thread that has stayed in it for a successor."""
    _member_alone(worker, number).leave(handed_over=True)


def _member_alone(worker: Worker, number: int) -> ClassicMember:
    """Create a member for a thread that runs no tasks."""
    return _member(worker, number, Planner(worker.topology, worker.config, worker.clients.admin()))


def _member(worker: Worker, number: int, planner: Planner) -> ClassicMember:
    """Create a thread's member of the group, with an instance id that outlives the process."""
    topology, config = worker.topology, worker.config
    return ClassicMember(
        topology.application_id,
        f"{topology.application_id}-{worker.id}-{number}",
        topology.source_topics,
        dial=worker.dial,
        plan=planner.plan,
        timeouts=Timeouts(
            config.session_timeout_ms,
            config.heartbeat_interval_ms,
            config.max_poll_interval_ms,
            config.task_timeout_ms,
        ),
        stopping=worker.stop.is_set,
        host=worker.host,
        topology=planner.declared,
    )
