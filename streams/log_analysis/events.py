"""Tell what a line is about: which application, group, producer, task, store and partition."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from streams.log_analysis.patterns import Pattern

Subject: TypeAlias = tuple[str, str]
"""A kind, such as store or topic, and a name."""

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_OWNERS = (
    re.compile(r"\bruns '([\w.-]+)' on "),
    re.compile(r"\bgroupId=([\w.-]+)"),
    re.compile(r"\bstream-(?:client|thread) \[([\w.-]+?)-" + _UUID),
    re.compile(r"\btransactionalId[= ]'?([\w.-]+?)-" + _UUID),
    re.compile(
        r"(?:\[Group |(?:rebalance|Stabilized|leaves|joining|joins) group |group ')([\w.-]+)"
    ),
)
_ABOUT = {
    "transactional id": re.compile(r"\btransactionalId[= ]'?([\w.:-]+)"),
    "task": re.compile(r"\btask (\d+_\d+)\b|\b[Tt]asks? \[(\d+_\d+)"),
    "store": re.compile(r"\bstore '([\w.-]+)'"),
    "partition": re.compile(r"\b([\w.-]+\[\d+\])"),
    "topic": re.compile(r"\b[Tt]opic(?: '|[=:] ?)([\w.-]+)"),
    "function": re.compile(r"\bin the user's function ([\w.<>-]+)"),
    "member": re.compile(r"\b([\w.-]+-" + _UUID + r"-\d+) leaves group"),
}
_NO_GROUP = {"null"}


class LogEvent(NamedTuple):
    """Describes a line that was found: when it was written, where, and what it is about."""

    pattern: Pattern
    at_s: float | None
    source: str
    message: str
    owner: str | None
    about: tuple[Subject, ...]
    is_ambiguous: bool = False
    """True if the time may be an hour later, as it comes twice when summer time ends."""
    process: int | None = None


def find_application_or_group(message: str) -> str | None:
    """Return the application or the group that a message names, None if it names none."""
    for each in _OWNERS:
        found = each.search(message)
        if found is not None and found[1] not in _NO_GROUP:
            return found[1]
    return None


def find_subjects(message: str) -> tuple[Subject, ...]:
    """Return the tasks, topics and other subjects that a log message names, by kind."""
    found = ((kind, each.search(message)) for kind, each in _ABOUT.items())
    return tuple(
        (kind, next(filter(None, match.groups()))) for kind, match in found if match is not None
    )
