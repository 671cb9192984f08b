"""Measure how old the answer of a worker's tasks may be: something newer may be elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streams.errors import StoreUnavailable
from streams.membership.protocol import AssignmentInfo


class ThreadAssignmentTimes(NamedTuple):
    """Holds a thread's assignment, and monotonic times in s.

    `assigned_at_s` is when it was taken over, `confirmed_at_s` when the group still had the member.
    """

    name: str
    assignment: AssignmentInfo | None
    assigned_at_s: float
    confirmed_at_s: float


def measure_membership_age_s(
    assignments: Sequence[ThreadAssignmentTimes], now_s: float, session_timeout_s: float
) -> float:
    """Return the seconds since when the group may have given up this worker's members.

    Raises StoreUnavailable if that is longer than a session lasts. `assignments` are those after
    the read: what was read before was the newest until then.
    """
    confirmed = [each.confirmed_at_s for each in assignments if each.assignment]
    age_s = max(now_s - min(confirmed, default=0.0), 0.0)
    if age_s > session_timeout_s:
        raise StoreUnavailable(
            f"the group's coordinator has not answered this worker for {age_s:.1f} s: others "
            "may have its tasks"
        )
    return age_s


def measure_pending_s(pending_ms: Iterable[int | None], now_ms: int) -> float:
    """Return the seconds for which Kafka may have had more than the stores have shown.

    `pending_ms` is since when each task has a commit of which that is not known.
    """
    since_ms = min((each for each in pending_ms if each is not None), default=None)
    return 0.0 if since_ms is None else max(now_ms - since_ms, 0) / 1000
