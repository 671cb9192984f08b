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
    """Of this thread; -1: any."""
    task_timeout_ms: int
    changed: Callable[[str], None]
    """Is told REBALANCING and RUNNING."""
    reached: Callable[[Step], None]
    ledger: Ledger | None = None
    committed: Callable[[Offsets], None] = lambda offsets: None
    """Is told the offsets of each commit."""
    counters: Counters = field(default_factory=Counters)
    inputs_changed: Callable[[], bool] = lambda: False
    """Whether inputs have got partitions that nobody reads. Raises StreamsError for one that is
    gone."""
    adopt: Callable[[Assigned], Assigned] = lambda assigned: assigned
    """Takes over what the group's leader has assigned: see `Planner.adopt`."""
    inputs_every_ms: int = 300_000
    """How often that is asked, by the group's leader."""
    replaced: Callable[[Exception], bool] = lambda error: False
    """Is told what ends the loop. True: another takes its place, in the group too."""
