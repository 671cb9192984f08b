"""Define the input of a server-side assignor for one member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

TopicPartitions = Mapping[UUID, frozenset[int]]


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """Holds the ids of a member's subscribed topics and its present target assignment."""

    topics: frozenset[UUID]
    assigned: TopicPartitions
    rack_id: str | None = None
    instance_id: str | None = None
