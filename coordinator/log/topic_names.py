"""Check the names of topics by Kafka's rules.

Source: org.apache.kafka.common.internals.Topic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from coordinator.errors import Code, Refused

_NAME_CHARACTERS_MAX = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raise Refused (INVALID_TOPIC_EXCEPTION) for a name that no topic can have."""
    why = _find_name_fault(name)
    if why:
        raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def _find_name_fault(name: str) -> str | None:
    """Return why no topic can have this name; None if one can."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > _NAME_CHARACTERS_MAX:
        return (
            f"the length of '{name}' is longer than the max allowed length {_NAME_CHARACTERS_MAX}"
        )
    if not _LEGAL_NAME.fullmatch(name):
        allowed = "ASCII alphanumerics, '.', '_' and '-'"
        return f"'{name}' contains one or more characters other than {allowed}"
    return None


def check_name_collision(name: str, other_names: Iterable[str]) -> None:
    """Raise Refused (INVALID_TOPIC_EXCEPTION) if one of the names differs only in `.` and `_`.

    Kafka's metrics can't tell these two characters apart.
    """
    like = name.replace(".", "_")
    if "_" not in like:
        return
    for other in other_names:
        if other.replace(".", "_") == like:
            raise Refused(
                Code.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )
