"""What a group of whatever kind says about its offsets: what may go, and from when on they age.

Each kind of group makes a Holding of itself; the decisions about offsets look at nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """`is_empty`: nobody is in the group, so that it may be deleted, and goes when its last offset
    expires. `lets_delete`: OffsetDelete may name partitions, of topics that it isn't subscribed to.
    `expires`: offsets of topics that it isn't subscribed to age, from `since_ms` on or, if that is
    None, each from its commit.
    """

    is_empty: bool
    lets_delete: bool = True
    expires: bool = True
    since_ms: int | None = None
    is_subscribed: Callable[[str], bool] = lambda topic: False


# A group that somebody commits offsets for, and that nobody has ever joined.
SIMPLE = Holding(is_empty=True)

# One whose records this broker can't read: who is in it, and since when, it doesn't know.
UNREADABLE = Holding(is_empty=False, lets_delete=False, expires=False)
