"""List the causes of a consumer group's next epoch."""

from __future__ import annotations

from enum import Enum


class GroupEpochCause(Enum):
    """Lists the causes of a group's next epoch; the values name them in metrics."""

    MEMBER_JOINED = "join"
    SUBSCRIPTION_CHANGED = "subscription"
    TOPICS_CHANGED = "topics"  # those that it is subscribed to
    REGEX_RESOLVED = "regex"  # an expression matches other topics than before
    MEMBER_LEFT = "leave"
    SESSION_EXPIRED = "session"
    NOT_REVOKED = "revoke"  # a member didn't revoke partitions in time
    NOT_JOINED = "rejoin"  # a classic member was told to join again, and didn't
    SYNC_EXPIRED = "sync"  # a classic member joined, and never sent a SyncGroup
