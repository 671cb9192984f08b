"""Assemble one stream thread from its dependencies.

The real machine and a simulated one differ in what they pass in, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from state.cache import ObjectCache
from state.recent_windows import RECENT_WINDOWS_MAX_BYTES
from streams.ledger import ledger_topic
from streams.membership.group_member import GroupMember
from streams.membership.group_offsets import check_groups_listed, fetch_group_offsets
from streams.membership.producer_identity import (
    check_transaction_coordinator,
    fetch_producer_identity,
)
from streams.membership.protocol import SubscriptionInfo
from streams.runtime.assigning.assignment import name_task_by_topic
from streams.runtime.clients import Admin, DataConsumer, KafkaClientSupplier
from streams.runtime.clients.interfaces import ProducerClient
from streams.runtime.clients.topic_limits import MESSAGE_BYTES_MAX_DEFAULT, create_limit_lookup
from streams.runtime.counters import ThreadCounters
from streams.runtime.offsets.committed_record_search import CommittedRecordSearch
from streams.runtime.offsets.missed_deletions import MissedDeletionCheck
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.runtime.offsets.repeated_writes import RepeatedWriteCheck
from streams.runtime.offsets.resetter_creation import create_offset_resetter
from streams.runtime.restoring.changelog_follower import ChangelogFollower
from streams.runtime.restoring.changelog_reader import StoreChangelogReader
from streams.runtime.restoring.restorer import Restorer
from streams.runtime.tasks.chosen_topics import ChosenTopics
from streams.runtime.tasks.failures import FailureHandler
from streams.runtime.tasks.partition_group import RecordOrderSettings
from streams.runtime.tasks.repartition_counts import RepartitionCountCache
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_creator import TaskCreator
from streams.runtime.threads.changelog_purge import ChangelogPurger, PurgeTiming
from streams.runtime.threads.commit import CommitStep
from streams.runtime.threads.ledger_writer import LedgerWriter
from streams.runtime.threads.loop import StreamLoop
from streams.runtime.threads.member_creation import (
    create_assignor,
    create_lone_member,
    create_member,
)
from streams.runtime.threads.producer_creation import RequireWanted
from streams.runtime.threads.producers import TaskProducers
from streams.runtime.threads.repartition_purge import RepartitionPurger
from streams.runtime.threads.thread_dependencies import ThreadDependencies
from streams.runtime.threads.thread_state import ThreadState
from streams.runtime.threads.topic_checks import create_lost_topic_check, create_rights_check
from streams.runtime.threads.worker_resources import WorkerResources
from streams.settings.config import StreamsConfig

_REASON_MAX = 500
_ASSIGNMENT_WAIT_S = 0.1
_RESTORE_TIMEOUT_S = 5.0


def _create_order_settings(config: StreamsConfig) -> RecordOrderSettings:
    """Create the settings by which tasks order records, and remember the order for a ledger."""
    return RecordOrderSettings(
        config.max_task_idle_ms, config.buffered_records_per_partition, keeps_order=config.ledger
    )


def _create_ledger_writer(worker: WorkerResources) -> LedgerWriter | None:
    """Create the writer of the ledger, None where the setting is off."""
    if not worker.config.ledger:
        return None
    return LedgerWriter(
        ledger_topic(worker.topology.application_id),
        lambda transactional_id: fetch_producer_identity(worker.open_connection, transactional_id),
    )


def _create_purgers(
    worker: WorkerResources, admin: Admin
) -> tuple[RepartitionPurger, ChangelogPurger]:
    """Create the purgers of the application's repartition topics and windowed changelogs."""
    application_id, config = worker.topology.application_id, worker.config
    fetch = partial(fetch_group_offsets, worker.open_connection)
    timing = PurgeTiming(config.repartition_purge_interval_ms, config.cut_retention_ms)
    check = partial(check_groups_listed, worker.open_connection)
    return RepartitionPurger(
        *(application_id, worker.topology.repartition_topics, admin, fetch),
        check_groups_listed=check,
        interval_ms=timing.interval_ms,
        host=worker.host,
    ), ChangelogPurger(application_id, admin, fetch, check, timing, worker.host)


@dataclass(frozen=True, slots=True)
class _ThreadClients:
    """Holds the consumers and admin clients of one stream thread."""

    consumer: DataConsumer
    admin: Admin
    security_version: int
    """The version of the connections' security with which they were created."""
    restore_consumer: DataConsumer
    restore_admin: Admin
    standby_consumers: list[DataConsumer] = field(default_factory=list)
    """The one that follows changelogs, once there was a standby task."""

    def renew_clients(self, settings: Mapping[str, Any]) -> None:
        """Create each client anew with these settings of its connections."""
        for consumer in (self.consumer, self.restore_consumer, *self.standby_consumers):
            consumer.renew_client(settings)
        for admin in (self.admin, self.restore_admin):
            admin.renew_client(settings)


def _create_thread_clients(clients: KafkaClientSupplier, thread_number: int) -> _ThreadClients:
    """Create the consumers and admin clients of a stream thread."""
    security_version = clients.security.version
    return _ThreadClients(
        clients.create_consumer(f"consumer-{thread_number}"),
        clients.create_admin(),
        security_version,
        clients.create_restore_consumer(f"restore-{thread_number}"),
        # The restorer retries by itself; a rebalance, or a stop, waits for its open requests.
        clients.create_admin(timeout_s=_RESTORE_TIMEOUT_S),
    )


def _create_restorer(
    worker: WorkerResources,
    thread_number: int,
    own: _ThreadClients,
    on_commit_step: Callable[[CommitStep], None],
) -> Restorer[Task]:
    """Create the restorer of a thread, with a consumer and an admin client of its own."""
    reader = StoreChangelogReader[Task](
        f"restore-{thread_number}",
        own.restore_consumer,
        own.restore_admin,
        worker.host,
        is_transactional=worker.config.exactly_once,
        timeout_ms=worker.config.task_timeout_ms,
        is_overdue=worker.is_overdue,
        accepts_loss=worker.config.accepts_changelog_loss,
        listener=worker.restore_listener,
        before_batch=lambda: on_commit_step(CommitStep.RESTORING),
        check_topics=create_lost_topic_check(worker, own.restore_admin),
    )

    def create_consumer() -> DataConsumer:
        own.standby_consumers.append(
            worker.clients.create_standby_consumer(f"standby-{thread_number}")
        )
        return own.standby_consumers[-1]

    follower = ChangelogFollower[Task](
        f"standby-{thread_number}",
        create_consumer,
        own.restore_admin,
        worker.host,
        fetch_committed_offsets=partial(
            fetch_group_offsets, worker.open_connection, worker.topology.application_id
        ),
        is_transactional=worker.config.exactly_once,
        accepts_loss=worker.config.accepts_changelog_loss,
        listener=worker.restore_listener,
        before_batch=lambda: on_commit_step(CommitStep.RESTORING),
    )
    return Restorer(reader, follower, worker.host, use_own_thread=True)


def _create_task_creator(
    worker: WorkerResources,
    member: GroupMember,
    admin: Admin,
    offset_resetter: OffsetResetter,
    counters: ThreadCounters,
    on_commit_step: Callable[[CommitStep], None],
) -> TaskCreator:
    """Create the TaskCreator of a thread, with the thread's part of the object cache."""
    config, global_tables = worker.config, worker.global_tables
    return TaskCreator(
        worker.topology,
        worker.directory,
        offset_resetter,
        worker.host,
        committed_offsets=member.fetch_committed_offsets,
        is_transactional=config.exactly_once,
        memory=worker.memory,
        cache=ObjectCache(
            config.cache_max_bytes // config.num_stream_threads,
            recent_windows_max_bytes=RECENT_WINDOWS_MAX_BYTES // config.num_stream_threads,
        ),
        on_part_written=lambda: on_commit_step(CommitStep.STORING),
        metadata_bytes_max=worker.metadata_bytes_max,
        collect_statistics=config.records_metrics("debug"),
        repeated_writes=RepeatedWriteCheck(
            worker.topology,
            admin,
            CommittedRecordSearch(
                admin, partial(worker.clients.create_restore_consumer, "search"), worker.host
            ),
            member.fetch_committed_offsets,
        ),
        missed_deletions=MissedDeletionCheck(worker.topology, admin, worker.host),
        global_replicas=None if global_tables is None else global_tables.replicas,
        failures=FailureHandler(
            config.handlers,
            counters=counters,
            monotonic_s=worker.host.monotonic_s,
            list_topics=lambda: admin.fetch_partition_counts().keys(),
            chosen_topics=ChosenTopics(config.metadata_max_age_ms, worker.host, worker.stop.wait),
            repartition_counts=RepartitionCountCache(),
            read_topics=worker.topology.read_topics,
        ),
    )


def _create_task_producers(
    worker: WorkerResources, member: GroupMember, admin: Admin
) -> TaskProducers:
    """Create the TaskProducers of a thread, by the application's processing guarantee."""

    def create_producer(name: str, require_wanted: RequireWanted = None) -> ProducerClient:
        if worker.config.exactly_once and worker.outage is not None:
            worker.outage.coordinators.add_transactional_id(name)
        if worker.config.exactly_once and worker.clients.security.value.is_secured:
            # librdkafka waits for a coordinator that refuses, and does not tell it from others.
            check_transaction_coordinator(worker.open_connection, name)
        return worker.clients.create_producer(
            name,
            require_wanted,
            get_coordinator_address=lambda: member.coordinator_address,
        )

    return TaskProducers(
        create_producer,
        guarantee=worker.config.processing_guarantee,
        application_id=worker.topology.application_id,
        thread_id=member.instance_id,
        is_member=member.is_membership_confirmed,
        host=worker.host,
        creation_timeout_ms=worker.config.task_timeout_ms,
        is_overdue=worker.is_overdue,
        name_task=partial(name_task_by_topic, worker.topology),
        fetch_limits=create_limit_lookup(admin.fetch_topic_settings, worker.config.producer),
        producer_bytes_max=int(
            worker.config.producer.get("message.max.bytes", MESSAGE_BYTES_MAX_DEFAULT)
        ),
    )


def _create_identity_check(worker: WorkerResources) -> Callable[[], bool]:
    """Create a function that tells whether the worker's ids were replaced since this loop began."""
    fencing = worker.fencing
    return (
        (lambda: False)
        if fencing is None
        else partial(fencing.is_replaced_or_raise_failure, worker.process_id)
    )


def create_stream_loop(
    worker: WorkerResources,
    thread_number: int,
    *,
    on_state_change: Callable[[ThreadState], None],
    on_commit_step: Callable[[CommitStep], None],
    decide_replacement: Callable[[Exception], bool] = lambda error: False,
) -> StreamLoop:
    """Create the loop of thread `thread_number`, with clients and a membership of its own."""
    topology, config, clients = worker.topology, worker.config, worker.clients
    own, counters = _create_thread_clients(clients, thread_number), ThreadCounters()
    planner = create_assignor(worker, own.admin)
    member = create_member(worker, thread_number, planner, own.admin)
    purger, changelog_purger = _create_purgers(worker, own.admin)

    def renew_clients() -> None:
        own.renew_clients(clients.security.value.build_librdkafka_settings())
        member.renew_connection()

    resetting = create_offset_resetter(topology, config, own.admin, worker.host)
    creator = _create_task_creator(worker, member, own.admin, resetting, counters, on_commit_step)
    return StreamLoop(
        ThreadDependencies(
            name=f"thread {thread_number}",
            group=topology.application_id,
            member=member,
            consumer=own.consumer,
            restorer=_create_restorer(worker, thread_number, own, on_commit_step),
            offset_resetter=resetting,
            admin=own.admin,
            task_creator=creator,
            producers=_create_task_producers(worker, member, own.admin),
            stop=worker.stop,
            control=worker.control,
            host=worker.host,
            commit_interval_ms=config.commit_every_ms,
            poll_records_max=config.max_poll_records,
            order_settings=_create_order_settings(config),
            uncommitted_bytes_max=_uncommitted_bytes_max_per_thread(config),
            task_timeout_ms=config.task_timeout_ms,
            on_state_change=on_state_change,
            on_commit_step=on_commit_step,
            ledger=_create_ledger_writer(worker),
            on_commit=purger.note_offsets_and_purge_if_due,
            on_expired=changelog_purger.purge_if_due,
            directory_id=worker.directory_id,
            task_offsets=worker.task_offsets,
            process_id=worker.process_id,
            is_identity_replaced=_create_identity_check(worker),
            client_tags=config.client_tags,
            rack=config.rack,
            endpoint=worker.endpoint,
            counters=counters,
            mend_topics_and_compare_inputs=planner.mend_topics_and_compare_inputs,
            patterns=worker.topology.patterns,
            fetch_source_topics_or_last_known=planner.fetch_source_topics_or_last_known,
            adopt_assignment=planner.adopt_assignment,
            input_check_interval_ms=config.metadata_max_age_ms,
            decide_replacement=decide_replacement,
            check_rights=create_rights_check(worker, own.admin),
            check_internal_topics=create_lost_topic_check(worker, own.admin),
            security=clients.security,
            security_version=own.security_version,
            renew_clients=renew_clients,
            outage=worker.outage,
        )
    )


def _uncommitted_bytes_max_per_thread(config: StreamsConfig) -> int:
    """Return the bytes of uncommitted writes that one thread may hold; negative means any."""
    given = config.statestore_uncommitted_max_bytes
    return given // config.num_stream_threads if given >= 0 else given


def request_group_shutdown(worker: WorkerResources, thread_number: int, reason: str) -> None:
    """Tell every member of the group to end, by joining it once more as thread `thread_number`.

    Source: Kafka Streams' SHUTDOWN_REQUESTED. Raises StreamsError where the group can't be reached
    for `task_timeout_ms`.
    """
    member = create_lone_member(worker, thread_number)
    try:
        member.start_joining(SubscriptionInfo((), reason[:_REASON_MAX]))
        while (
            not worker.stop.is_set()
            and member.enter_assigned_generation(_ASSIGNMENT_WAIT_S) is None
        ):
            pass  # until all members have joined
    finally:
        member.leave_group()


def leave_group_for_ended_thread(worker: WorkerResources, thread_number: int) -> None:
    """Leave the group in place of an ended thread, which kept its membership for a successor."""
    create_lone_member(worker, thread_number).leave_group(is_handed_over=True)
