"""List the causes of a streams group's next epoch."""

from __future__ import annotations

from enum import Enum


class StreamsEpochCause(Enum):
    """Lists the causes of a group's next epoch; the values name them in metrics."""

    MEMBER_JOINED = "join"
    MEMBER_CHANGED = "subscription"  # a member describes itself otherwise than before
    TOPICS_CHANGED = "topics"  # those that the topology needs
    SETTINGS_CHANGED = "settings"  # those that an assignment depends on
    MEMBER_LEFT = "leave"
    SESSION_EXPIRED = "session"
    NOT_REVOKED = "revoke"  # a member didn't revoke tasks in time
