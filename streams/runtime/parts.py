"""Declare what a stream thread depends on: everything that could surprise is passed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from streams.membership.protocol import Assigned
from streams.membership.terms import GroupMember
from streams.runtime.commit import Offsets, Step
from streams.runtime.counters import Counters
from streams.runtime.host import Event, Host
from streams.runtime.interfaces import AdminClient, ConsumerClient
from streams.runtime.ledger import Ledger
from streams.runtime.opening import Opener
from streams.runtime.producers import Producers
from streams.runtime.queues import Order
from streams.runtime.resetting import Resetting
from streams.runtime.restorer import Restorer
from streams.runtime.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Holds the dependencies of one `StreamLoop`."""

    name: str
    group: str
    member: GroupMember
    consumer: ConsumerClient
    restorer: Restorer[Task]
    resetting: Resetting
    admin: AdminClient
    opener: Opener
    producers: Producers
    stop: Event
    host: Host
    commit_every_ms: int
    records_max: int
    order: Order
    uncommitted_bytes_max: int
    """The limit for uncommitted writes of this thread; -1 for none."""
    task_timeout_ms: int
    changed: Callable[[str], None]
    """Is called with REBALANCING and RUNNING."""
    reached: Callable[[Step], None]
    ledger: Ledger | None = None
    committed: Callable[[Offsets], None] = lambda offsets: None
    """Is called with the offsets of each commit."""
    counters: Counters = field(default_factory=Counters)
    inputs_changed: Callable[[], bool] = lambda: False
    """Returns whether inputs have got partitions that nobody reads. Raises StreamsError for an
    input that does not exist any more."""
    adopt: Callable[[Assigned], Assigned] = lambda assigned: assigned
    """Takes over what the group's leader has assigned: see
    `StreamsPartitionAssignor.adopt_assignment`."""
    inputs_every_ms: int = 300_000
    """The interval at which the group's leader checks the inputs."""
    replaced: Callable[[Exception], bool] = lambda error: False
    """Is called with the error that ends the loop, and returns whether another loop takes its
    place, and its membership."""
