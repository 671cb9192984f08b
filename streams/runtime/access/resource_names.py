"""Name an application's transactional ids and the groups of its cuts."""

from __future__ import annotations

import re

from streams.settings.guarantees import PRODUCER_PER_TASK

_OWN_REST = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+|task:.*")
"""What follows an application id and a dash: process and thread, or the task's name."""


def transactional_id_prefix(application_id: str, guarantee: str) -> str:
    """Return how all transactional ids of an application begin."""
    # Neither an application id nor a topic can have the colon: without it application `a` that
    # reads `b-c` and application `a-b` that reads `c` would have one id, and fence each other.
    return f"{application_id}-task:" if guarantee == PRODUCER_PER_TASK else f"{application_id}-"


def is_own_transactional_id(transactional_id: str, application_id: str) -> bool:
    """Return whether an id is one that workers of an application make, with either guarantee.

    Those of another program may begin alike: `orders-api-1` is none of `orders`.
    """
    rest = transactional_id.removeprefix(f"{application_id}-")
    return rest != transactional_id and _OWN_REST.fullmatch(rest) is not None


def cut_group_prefix(application_id: str) -> str:
    """Return how the names of groups begin that keep consistent cuts of an application."""
    return f"{application_id}-cut"


def is_cut_group(group: str, application_id: str) -> bool:
    """Return whether a group keeps a consistent cut of the application as its offsets."""
    name = cut_group_prefix(application_id)
    return group == name or group.startswith(f"{name}-")
