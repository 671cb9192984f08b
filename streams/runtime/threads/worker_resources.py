"""Hold the resources that the threads of a worker share: clients, settings, directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

from state.directory import StateDirectory
from state.rocksdb import MemoryBudget
from streams.common.host import Event, Host
from streams.membership.broker_outage import BrokerOutage, IsOverdue, create_overdue_check
from streams.membership.connection import OpenConnection
from streams.membership.instance_fencing import InstanceFencing
from streams.runtime.clients import KafkaClientSupplier
from streams.runtime.global_tables.tables import GlobalTables
from streams.runtime.restoring.progress import RestoreListener
from streams.runtime.tasks.task_offsets import TaskOffsets
from streams.runtime.threads.worker_control import WorkerControl
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResources:
    """Holds the configuration, clients, directory and machine that a worker's threads share.

    `process_id` outlives the process: see `ProcessSlot`.
    """

    process_id: str
    topology: Topology
    config: StreamsConfig
    clients: KafkaClientSupplier
    directory: StateDirectory
    host: Host
    open_connection: OpenConnection
    stop: Event
    metadata_bytes_max: int
    """The brokers' limit in bytes for the metadata of an offset."""
    memory: MemoryBudget | None = None
    """The memory of RocksDB, for all stores of the process."""
    restore_listener: RestoreListener | None = None
    start_id: str = field(default_factory=lambda: uuid4().hex[:8])
    """Tells this start of the process from others with its process id."""
    directory_id: str = ""
    """The id of the state directory."""
    control: WorkerControl = field(default_factory=WorkerControl)
    endpoint: str = ""
    """The host:port at which the worker answers queries; empty if it answers none."""
    task_offsets: TaskOffsets = field(default_factory=TaskOffsets)
    global_tables: GlobalTables | None = None
    outage: BrokerOutage | None = None
    """Knows whether any broker answers: `open_connection` is its own, where there is one."""
    fencing: InstanceFencing | None = None
    """Gives the worker other ids where its members are fenced again and again."""

    @property
    def is_overdue(self) -> IsOverdue:
        """Return the function that says whether a time-out is over, without outages."""
        return create_overdue_check(self.host) if self.outage is None else self.outage.is_overdue
