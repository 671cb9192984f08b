"""Say what the statuses of a streams group mean for an application, and what is to be done.

    status                            what follows                           the group is ready
    STALE_TOPOLOGY                    a warning, while it stays so           yes
    MISSING_SOURCE_TOPICS             a warning; the thread ends when it     no
                                      has lasted for task_timeout_ms
    INCORRECTLY_PARTITIONED_TOPICS    the thread ends                        no
    MISSING_INTERNAL_TOPICS           a warning; the thread ends when it     no
                                      has lasted for task_timeout_ms
    SHUTDOWN_APPLICATION              the application ends                   yes
    ASSIGNMENT_DELAYED                nothing: tasks come soon               no
    any other                         a warning with the broker's text       yes

Source: StreamsGroupHeartbeatResponse.Status, KIP-1071.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from streams.command_lines import format_command


class GroupStatusCode(IntEnum):
    """Lists the statuses that an answer to a heartbeat may have, by their number on the wire."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class GroupStatus(NamedTuple):
    """Represents one status of a group; `code` may be one that a later release has added."""

    code: int
    detail: str


_MISSING_SOURCES = re.compile(r"Source topics (.+?)(?: and \d+ additional topics?)? are missing\.")
"""Matches the details of MISSING_SOURCE_TOPICS as Kafka 4.4 and the embedded broker write them."""
_NOT_READY = {
    GroupStatusCode.MISSING_SOURCE_TOPICS,
    GroupStatusCode.INCORRECTLY_PARTITIONED_TOPICS,
    GroupStatusCode.MISSING_INTERNAL_TOPICS,
    GroupStatusCode.ASSIGNMENT_DELAYED,
}
_NO_COUNTS: Mapping[str, int] = MappingProxyType({})


def is_group_ready(statuses: Iterable[GroupStatus]) -> bool:
    """Return whether a group with these statuses has assigned its tasks."""
    return not any(each.code in _NOT_READY for each in statuses)


def find_shutdown_reason(statuses: Iterable[GroupStatus]) -> str:
    """Return why the whole application is to end; empty if it is not."""
    return next(
        (each.detail for each in statuses if each.code == GroupStatusCode.SHUTDOWN_APPLICATION), ""
    )


def explain_fatal_status(group_id: str, statuses: Iterable[GroupStatus]) -> str:
    """Return the message for a status that no heartbeat changes; empty if there is none."""
    for status in statuses:
        if status.code == GroupStatusCode.INCORRECTLY_PARTITIONED_TOPICS:
            return (
                f"group {group_id!r}: topics have wrong numbers of partitions, the broker says: "
                f"{_end_sentence(status.detail)} Keys would be looked for in other partitions than "
                "they were written to. Give topics that are joined equally many partitions; if an "
                "internal topic is wrong, end all workers and start over with "
                f"{format_command('group reset')}"
            )
    return ""


def explain_lasting_status(
    group_id: str,
    statuses: Iterable[GroupStatus],
    *,
    had_tasks: bool = False,
    partition_counts: Mapping[str, int] = _NO_COUNTS,
) -> str:
    """Return the message for a status that ends a thread if it stays; empty if there is none.

    `had_tasks`: the member has had tasks of this group before. `partition_counts` are those that
    topics had when they were seen last.
    """
    for status in statuses:
        if status.code == GroupStatusCode.MISSING_SOURCE_TOPICS:
            advice = _advise_on_sources(status.detail, had_tasks, partition_counts)
        elif status.code == GroupStatusCode.MISSING_INTERNAL_TOPICS:
            advice = "The broker creates them; its log tells what keeps it from that"
        else:
            continue
        said = f"{_end_sentence(status.detail)} {advice}"
        if had_tasks:
            return f"group {group_id!r} has no tasks any more, the broker says: {said}"
        return f"group {group_id!r} has no tasks yet, the broker says: {said}"
    return ""


def _find_missing_sources(detail: str) -> list[str]:
    """Return the topics that a broker names as missing, of which it leaves out all but three."""
    named = _MISSING_SOURCES.match(detail)
    return named[1].split(", ") if named else ["TOPIC"]


def _advise_on_sources(detail: str, had_tasks: bool, partition_counts: Mapping[str, int]) -> str:
    """Return what is to be done where source topics are missing, with commands to paste."""
    names = _find_missing_sources(detail)
    by_count: dict[str, list[str]] = {}
    for name in names:
        by_count.setdefault(str(partition_counts.get(name, "NUMBER")), []).append(name)
    command = " and ".join(
        format_command("create-topics", *same, "--partitions", count)
        for count, same in by_count.items()
    )
    if not had_tasks:
        return f"Create them, such as with {command}"
    made_again = [word for name in names for word in ("--made-again", name)]
    return (
        "They were read before: topics that are created again are other ones, from which workers "
        f"read only once the group has offsets of these. End all workers, create them with "
        f"{command}, run {format_command('group restore-offsets', *made_again)}, and start again"
    )


def _end_sentence(text: str) -> str:
    """Return a text of the broker with a full stop, which not all of them have."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def explain_passing_statuses(group_id: str, statuses: Sequence[GroupStatus]) -> str:
    """Return the warning for group statuses that pass by themselves; empty if there are none."""
    explained = [
        *(
            f"group {group_id!r} has a newer topology than this worker, the broker says: "
            f"{_end_sentence(each.detail)} Let the worker run the version of the application that "
            "the others run"
            for each in statuses
            if each.code == GroupStatusCode.STALE_TOPOLOGY
        ),
        *(
            f"group {group_id!r} has a status that this release does not know: {each.detail}"
            for each in statuses
            if each.code not in set(GroupStatusCode)
        ),
    ]
    return "; ".join(filter(None, explained))
