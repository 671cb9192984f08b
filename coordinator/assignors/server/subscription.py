"""What an assignor of the server is told of one member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

TopicPartitions = Mapping[UUID, frozenset[int]]


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """Ids of the topics a member is subscribed to, and the target assignment it has now."""

    topics: frozenset[UUID]
    assigned: TopicPartitions
    rack_id: str | None = None
    instance_id: str | None = None
