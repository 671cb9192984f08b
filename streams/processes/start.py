"""Start an application: check its topics, claim its directory, and start its threads.

Everything that needs a broker, a lock, a socket or a thread is done here, in this order, so that an
error leaves nothing behind: brokers, state directory, clients, HTTP endpoints, threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias
from uuid import UUID, uuid4

from state.directory import ProcessSlot, StateDirectory
from state.errors import StateError
from state.rocksdb import MemoryBudget
from streams.common.host import Host, ShiftedHost, SystemHost
from streams.errors import BrokerUnavailable, ConfigError, OutcomeUnknown, StreamsError
from streams.ledger import ledger_topic
from streams.membership.broker_outage import BrokerOutage
from streams.membership.instance_fencing import InstanceFencing, WorkerIds
from streams.processes.announcement import announce_start
from streams.processes.broker_connector import BROKER_WAIT_S, BrokerConnector
from streams.processes.broker_wait import (
    has_run_before,
    refuse_unknown_server_names,
    wait_for_brokers,
)
from streams.processes.cluster import Cluster, find_or_start_cluster
from streams.processes.endpoints import start_endpoints
from streams.processes.garbage_collection import raise_collection_threshold
from streams.processes.group_protocol_choice import choose_group_protocol
from streams.processes.lifecycle import ApplicationLifecycle, StateListener
from streams.processes.query_endpoint import QueryEndpoint
from streams.processes.running import RunningApp
from streams.processes.security_watch import SecurityWatch
from streams.processes.worker_addresses import note_metrics_address
from streams.processes.worker_collector import create_worker_collector
from streams.processes.worker_threads import WorkerThreads
from streams.runtime.access.acls import derive_acls, list_topic_reads_and_writes
from streams.runtime.assigning.internal_topics import LEDGER_SETTINGS, list_internal_topics
from streams.runtime.assigning.required_topics import check_topics
from streams.runtime.clients import Admin, KafkaClientSupplier
from streams.runtime.global_tables.copied_records import RecordCopier
from streams.runtime.global_tables.global_replicas import open_replicas
from streams.runtime.global_tables.tables import GlobalTables
from streams.runtime.offsets.metadata_sizes import check_metadata_sizes
from streams.runtime.restoring.progress import RestoreListener
from streams.runtime.tasks.task_offsets import TaskOffsets, find_dormant_tasks
from streams.runtime.threads.commit import CommitStep
from streams.runtime.threads.query_measurements import QueryMeasurements
from streams.runtime.threads.stream_thread import StreamThread
from streams.runtime.threads.worker_resources import WorkerResources
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology

DirectoryId: TypeAlias = str

_GLOBAL_REQUEST_TIMEOUT_S = 5.0
"""The seconds that the global tables wait for a response before they send the request again.

In between they notice a stop, and that brokers refuse the credentials.
"""
_DEFAULT_METADATA_BYTES_MAX = 4_096
"""Kafka's default of offset.metadata.max.bytes."""
_NEW_TOPIC_WAIT_S, _NEW_TOPIC_PAUSE_S = 1.0, 0.1
"""The seconds for which a missing topic is looked up again, and the seconds between two look-ups.

With KRaft a broker lists a new topic a moment after the controller has answered its creator.
"""


def start_application(
    topology: Topology,
    config: StreamsConfig,
    *,
    on_step: Callable[[CommitStep], None] = lambda step: None,
    worker_number: int = 0,
    worker_count: int = 1,
    restore_listener: RestoreListener | None = None,
    state_listener: StateListener | None = None,
    is_given_up: Callable[[], bool] | None = None,
) -> RunningApp:
    """Start one worker of an application in the background and return its handle.

    `worker_number` tells the `worker_count` workers of one command apart: ports are counted
    up by it. `on_step` is called at each step of each commit. With `is_given_up` a broker that is
    away is waited for where the application has run before, and it ends the wait: StartGivenUp.
    Raises ConfigError; BrokerUnavailable if no broker answers.
    """
    raise_collection_threshold()
    host = SystemHost() if (file := config.clock_shift_file) is None else ShiftedHost(file)
    brokers = _find_brokers(topology, config, worker_number, host, is_given_up)
    with ExitStack() as exits:
        directory, directory_id, slot = _claim_slot(config, topology.application_id)
        exits.callback(slot.release_lock)
        stop, all_threads_ended = host.create_event(), host.create_event()
        memory = MemoryBudget(config.rocksdb_memory_max_bytes)
        security_watch = SecurityWatch(brokers.cluster, config.connection, host)
        connect = BrokerConnector(config, brokers.cluster, host, stop, security_watch.renew_refused)
        outage = connect.create_outage(topology.application_id, _list_own_topics(topology, config))
        queries = QueryEndpoint(config, worker_number, exits)
        worker = WorkerResources(
            process_id=str(slot.id),
            topology=topology,
            config=choose_group_protocol(config, topology, outage.open_connection),
            clients=brokers.clients,
            directory=directory,
            directory_id=directory_id,
            task_offsets=_find_offsets_of_dormant_tasks(topology, directory, host, memory),
            host=host,
            open_connection=outage.open_connection,
            outage=outage,
            stop=stop,
            metadata_bytes_max=brokers.metadata_bytes_max,
            fencing=_create_fencing(directory, directory_id, slot, host),
            memory=memory,
            restore_listener=restore_listener,
            endpoint=queries.address,
            global_tables=_open_global_tables(
                topology, config, brokers.clients, directory, slot, host, memory, exits, outage
            ),
        )
        lifecycle = ApplicationLifecycle(
            0, stop=stop, all_threads_ended=all_threads_ended, listener=state_listener
        )
        threads = WorkerThreads(worker, lifecycle, config.num_stream_threads, on_step)
        running = RunningApp(
            worker,
            threads,
            lifecycle,
            all_threads_ended,
            bootstrap_servers=brokers.cluster.bootstrap_servers,
            watch_security=security_watch.watch_until_stopped,
        )
        _serve_http(running, worker, worker_number, threads.running, queries.measurements, exits)
        note_metrics_address(directory, slot, config.health_host, running.ports, host, exits)
        queries.serve_queries(running, host, exits)
        _announce_worker(running, worker, worker_number, worker_count)
        running.start_threads(exits.pop_all())
    return running


@dataclass(frozen=True, slots=True)
class _Brokers:
    """Holds the cluster, its clients and its limit of metadata, as found at the start."""

    cluster: Cluster
    clients: KafkaClientSupplier
    metadata_bytes_max: int


def _find_brokers(
    topology: Topology,
    config: StreamsConfig,
    worker_number: int,
    host: Host,
    is_given_up: Callable[[], bool] | None,
) -> _Brokers:
    """Connect to the brokers; wait for them where the application has run, and may wait.

    Raises ConfigError, BrokerUnavailable; StartGivenUp.
    """
    connect = partial(_connect_and_prepare_topics, topology, config)
    if not has_run_before(config, topology.application_id):
        refuse_unknown_server_names(config)
    elif is_given_up is not None:
        return wait_for_brokers(connect, config, worker_number, host, is_given_up)
    return connect()


def _connect_and_prepare_topics(topology: Topology, config: StreamsConfig) -> _Brokers:
    """Find the brokers, check the application's topics there, and create its ledger.

    Raises ConfigError for what the brokers can't serve, or if none answers.
    """
    cluster = find_or_start_cluster(config)
    servers = cluster.bootstrap_servers
    internal = list_internal_topics(topology, has_ledger=config.ledger)
    names = (topology.application_id, config, servers)
    clients = KafkaClientSupplier(*names, cluster.security, internal)
    clients.check_user_settings()
    admin = clients.create_admin(retry_s=BROKER_WAIT_S)
    counts = _wait_for_topics_and_fetch_counts(admin, topology, config, servers)
    metadata_bytes_max = admin.fetch_strictest_broker_limit_or_default(
        "offset.metadata.max.bytes", _DEFAULT_METADATA_BYTES_MAX
    )
    check_metadata_sizes(topology, metadata_bytes_max)
    if config.ledger and ledger_topic(topology.application_id) not in counts:
        _create_ledger(admin, topology.application_id, config)
    return _Brokers(cluster, clients, metadata_bytes_max)


def _wait_for_topics_and_fetch_counts(
    admin: Admin, topology: Topology, config: StreamsConfig, servers: str
) -> dict[str, int]:
    """Return every topic's number of partitions, once those of the application are there.

    Raises ConfigError for a topic that does not exist, or if no broker answers.
    """
    until_s = time.monotonic() + _NEW_TOPIC_WAIT_S
    while True:
        counts = admin.fetch_partition_counts_at_start(BROKER_WAIT_S)
        _check_rights_to_unlisted_topics(admin, topology, config, counts)
        try:
            check_topics(topology, counts, servers, config.handlers.dead_letter_topics())
            return counts
        except ConfigError:
            if time.monotonic() > until_s:
                raise
        time.sleep(_NEW_TOPIC_PAUSE_S)


def _check_rights_to_unlisted_topics(
    admin: Admin, topology: Topology, config: StreamsConfig, listed: Collection[str]
) -> None:
    """Raise AuthorizationError for a topic that is not listed since it may not be described.

    Raises BrokerUnavailable if no broker answers.
    """
    operations = list_topic_reads_and_writes(derive_acls(topology, config))
    try:
        admin.check_topic_rights({t: each for t, each in operations.items() if t not in listed})
    except OutcomeUnknown as error:
        raise BrokerUnavailable(f"the rights to topics can't be looked at: {error}") from error


def _create_ledger(admin: Admin, application_id: str, config: StreamsConfig) -> None:
    """Create the topic of the application's ledger if there is none. Raises BrokerUnavailable."""
    topic = ledger_topic(application_id)
    try:
        settings = {**config.topic_defaults, **LEDGER_SETTINGS}
        admin.create_topics({topic: 1}, {topic: settings}, config.replication_factor)
    except OutcomeUnknown as error:
        raise BrokerUnavailable(f"the ledger can't be made: {error}") from error


def _list_own_topics(topology: Topology, config: StreamsConfig) -> Collection[str]:
    """Return the topics that the application reads or writes, as far as they are known now."""
    return list_topic_reads_and_writes(derive_acls(topology, config))


def _find_offsets_of_dormant_tasks(
    topology: Topology, directory: StateDirectory, host: Host, memory: MemoryBudget
) -> TaskOffsets:
    """Find out how far the state is that earlier processes have left. Raises ConfigError."""
    try:
        return TaskOffsets(directory, find_dormant_tasks(topology, directory, host, memory))
    except StateError as error:
        raise ConfigError(str(error)) from error


def _claim_slot(
    config: StreamsConfig, application_id: str
) -> tuple[StateDirectory, DirectoryId, ProcessSlot]:
    """Claim a worker's slot, and return the state directory, its id and the slot.

    Raises ConfigError.
    """
    try:
        directory = StateDirectory(config.state_dir, application_id)
        return directory, str(directory.read_or_create_id(uuid4)), directory.claim_slot(uuid4)
    except StateError as error:
        raise ConfigError(str(error)) from error


def _create_fencing(
    directory: StateDirectory, directory_id: str, slot: ProcessSlot, host: Host
) -> InstanceFencing:
    """Create the check that gives the worker new ids if another worker uses the same ones."""
    ids = WorkerIds(str(slot.id), directory_id)

    def renew_identity() -> WorkerIds:
        try:
            renewed = directory.replace_slot_and_directory_ids(slot, UUID(directory_id), uuid4)
        except StateError as error:
            raise StreamsError(
                f"another worker has the ids of the state directory {str(directory.path)!r} or of "
                f"a copy of it, and {error}: give each worker a directory of its own"
            ) from error
        return WorkerIds(str(slot.id), str(renewed))

    return InstanceFencing(ids, renew_identity, host.create_lock())


def _serve_http(
    running: RunningApp,
    worker: WorkerResources,
    worker_number: int,
    threads: Sequence[StreamThread],
    queries: QueryMeasurements | None,
    exits: ExitStack,
) -> None:
    """Start the HTTP endpoints of a worker, which `exits` closes. Raises ConfigError."""
    collector = create_worker_collector(worker, threads, running.health, queries)
    for setting, endpoint in start_endpoints(
        worker.config, worker_number, worker.host, report_health=running.health, collector=collector
    ):
        exits.callback(endpoint.close)
        running.ports[setting] = endpoint.port


def _announce_worker(
    running: RunningApp, worker: WorkerResources, worker_number: int, worker_count: int
) -> None:
    """Log what a worker runs, and where."""
    announce_start(
        worker.topology,
        worker.config,
        bootstrap_servers=running.bootstrap_servers,
        directory=worker.directory.path,
        ports=running.ports,
        worker_number=worker_number,
        worker_count=worker_count,
    )


def _open_global_tables(
    topology: Topology,
    config: StreamsConfig,
    clients: KafkaClientSupplier,
    directory: StateDirectory,
    slot: ProcessSlot,
    host: SystemHost,
    memory: MemoryBudget,
    exits: ExitStack,
    outage: BrokerOutage,
) -> GlobalTables | None:
    """Open the replicas of the global tables in this worker's own part of the directory."""
    tables = topology.global_tables
    if not tables:
        return None
    replicas = open_replicas(
        tables, lambda store: directory.build_global_store_path(slot.number, store), memory
    )
    for replica in replicas.values():
        exits.callback(replica.close)
    admin = clients.create_admin(timeout_s=_GLOBAL_REQUEST_TIMEOUT_S)
    copier = RecordCopier(
        config.handlers,
        create_producer=lambda: clients.create_plain_producer("global", _GLOBAL_REQUEST_TIMEOUT_S),
        list_topics=lambda: admin.fetch_partition_counts().keys(),
        read_topics=topology.read_topics,
        host=host,
        timeout_ms=config.task_timeout_ms,
        is_overdue=outage.is_overdue,
    )
    return GlobalTables(
        tables,
        replicas,
        create_consumer=lambda: clients.create_global_consumer("global"),
        copier=copier,
        admin=admin,
        host=host,
        timeout_ms=config.task_timeout_ms,
        is_overdue=outage.is_overdue,
        topic_check_ms=config.metadata_max_age_ms,
        security=clients.security,
    )
