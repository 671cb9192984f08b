"""What a consumer group gets its next epoch for. The values name it in the figures."""

from __future__ import annotations

from enum import Enum


class Cause(Enum):
    MEMBER_JOINED = "join"
    SUBSCRIPTION_CHANGED = "subscription"
    TOPICS_CHANGED = "topics"  # those that it is subscribed to
    REGEX_RESOLVED = "regex"  # one of its expressions stands for other topics than before
    MEMBER_LEFT = "leave"
    SESSION_EXPIRED = "session"
    NOT_REVOKED = "revoke"  # a member kept what it had to give up for too long
    NOT_JOINED = "rejoin"  # a classic member was told to join again, and didn't
    SYNC_EXPIRED = "sync"  # a classic member joined, and never asked for its assignment
