"""Describe what a group says about its offsets: which may be deleted, and from when on they expire.

Each kind of group makes a `GroupOffsetPolicy` of itself; the decisions about offsets look at
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsetPolicy:
    """Tells which offsets of a group may be deleted or expire.

    `is_empty`: nobody is in the group, so that it may be deleted, and goes when its last offset
    expires. `allows_deletion`: OffsetDelete may name partitions, of topics that it isn't subscribed
    to. `allows_expiry`: offsets of topics that it isn't subscribed to expire, counted from
    `empty_since_ms` or, if that is None, each from its commit.
    """

    is_empty: bool
    allows_deletion: bool = True
    allows_expiry: bool = True
    empty_since_ms: int | None = None
    is_subscribed: Callable[[str], bool] = lambda topic: False


# Of a group that somebody commits offsets for and that nobody has ever joined.
SIMPLE_GROUP_POLICY = GroupOffsetPolicy(is_empty=True)

# Of a group whose records this broker can't read, so that it doesn't know the members.
UNREADABLE_GROUP_POLICY = GroupOffsetPolicy(
    is_empty=False, allows_deletion=False, allows_expiry=False
)
