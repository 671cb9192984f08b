"""Declare the dependencies of a stream thread, which tests can replace one by one.

`loop_collaborators` gives each class of the thread those that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streams.common.host import Event, Host
from streams.connection.current import CurrentSecurity
from streams.connection.security import PLAINTEXT
from streams.membership.broker_outage import BrokerOutage
from streams.membership.group_member import GroupMember
from streams.membership.protocol import AssignmentInfo
from streams.runtime.changelogs.window_expiry import ExpiredRecords
from streams.runtime.clients.interfaces import AdminClient, ConsumerClient
from streams.runtime.counters import ThreadCounters
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.runtime.restoring.restorer import Restorer
from streams.runtime.tasks.partition_group import RecordOrderSettings
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_creator import TaskCreator
from streams.runtime.tasks.task_offsets import TaskOffsets
from streams.runtime.threads.commit import CommitStep, PartitionOffsets
from streams.runtime.threads.ledger_writer import LedgerWriter
from streams.runtime.threads.producers import TaskProducers
from streams.runtime.threads.thread_state import ThreadState
from streams.runtime.threads.worker_control import WorkerControl
from streams.topics import TopicPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDependencies:
    """Holds the dependencies of one `StreamLoop`."""

    name: str
    group: str
    member: GroupMember
    consumer: ConsumerClient
    restorer: Restorer[Task]
    offset_resetter: OffsetResetter
    admin: AdminClient
    task_creator: TaskCreator
    producers: TaskProducers
    stop: Event
    host: Host
    commit_interval_ms: int
    poll_records_max: int
    order_settings: RecordOrderSettings
    uncommitted_bytes_max: int
    """The limit for uncommitted writes of this thread; -1 for none."""
    task_timeout_ms: int
    """How long tasks may fail to commit while brokers answer."""
    on_state_change: Callable[[ThreadState], None]
    """Is called with REBALANCING and RUNNING."""
    on_commit_step: Callable[[CommitStep], None]
    ledger: LedgerWriter | None = None
    on_commit: Callable[[PartitionOffsets], None] = lambda offsets: None
    """Is called with the offsets of each commit."""
    on_expired: Callable[[list[ExpiredRecords]], None] = lambda expired: None
    """Is called after a commit with what has expired of changelogs."""
    directory_id: str = ""
    """The id of the state directory, which workers of one machine may share."""
    task_offsets: TaskOffsets = field(default_factory=TaskOffsets)
    process_id: str = ""
    """The id of the worker, which outlives its process."""
    is_identity_replaced: Callable[[], bool] = lambda: False
    """Returns whether the worker has taken other ids than `directory_id` and `process_id`. Raises
    StreamsError if it has to, and can't."""
    client_tags: Mapping[str, str] = field(default_factory=dict)
    """Where the worker runs, for the leader (KIP-708)."""
    rack: str = ""
    """The rack of its consumers, for the leader (KIP-925)."""
    endpoint: str = ""
    """The host:port at which the worker answers queries; empty if it answers none."""
    counters: ThreadCounters = field(default_factory=ThreadCounters)
    mend_topics_and_compare_inputs: Callable[[], bool] = lambda: False
    """Returns whether inputs have got partitions that nobody reads. Raises StreamsError for an
    input that does not exist any more."""
    patterns: Sequence[TopicPattern] = ()
    """The patterns of topics that are read, which may come and go."""
    fetch_source_topics_or_last_known: Callable[[], tuple[str, ...]] = tuple
    """Returns the topics that tasks read, for the group; none if they are known to the member."""
    adopt_assignment: Callable[[AssignmentInfo], AssignmentInfo] = lambda assigned: assigned
    """Takes over what the group's leader has assigned: see
    `StreamsPartitionAssignor.adopt_assignment`."""
    check_rights: Callable[[], None] = lambda: None
    """Raises AuthorizationError if a right to read or write a topic is missing, and OutcomeUnknown
    if no broker answers soon."""
    check_internal_topics: Callable[[], None] = lambda: None
    """Raises StreamsError if an internal topic that the tasks need is gone, or has other
    partitions than they; nothing if no broker answers."""
    input_check_interval_ms: int = 300_000
    """The interval at which the group's leader checks the inputs."""
    security: CurrentSecurity = field(default_factory=lambda: CurrentSecurity(PLAINTEXT))
    """The security of the connections of all clients of the worker."""
    security_version: int = 0
    """The version of it with which the thread's clients were created."""
    renew_clients: Callable[[], None] = lambda: None
    """Replaces the thread's clients, but for producers, by others with the present security."""
    outage: BrokerOutage | None = None
    """Knows whether any broker answers; None where one always does."""
    control: WorkerControl = field(default_factory=WorkerControl)
    """Says whether to pause, and whether to leave the group at the end."""
    decide_replacement: Callable[[Exception], bool] = lambda error: False
    """Is called with the error that ends the loop, and returns whether another loop takes its
    place, and its membership."""
