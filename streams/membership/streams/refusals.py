"""Explain the codes with which a broker refuses a streams member for good."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kio.schema.errors import ErrorCode

from streams.command_lines import format_command
from streams.errors import StreamsError
from streams.membership.authorization import check_authorized

_TOPOLOGY_CHANGED = "Topology updates are not supported"
"""How Kafka's message begins for a member with another topology than its group's (4.2 to 4.4)."""
_CLAUSES_SHOWN = 5

FindDifferences = Callable[[], Sequence[str] | None]
"""Returns in what a group's topology differs from a member's, None where that can't be told."""


def explain_refusal(
    group_id: str,
    code: ErrorCode,
    message: str,
    find_differences: FindDifferences = lambda: None,
) -> StreamsError:
    """Return the error for a heartbeat that was refused.

    `find_differences` is asked about another topology. Raises: AuthorizationError.
    """
    said = f"{code.name.upper()}{': ' if message else ''}{message}".rstrip(".")
    if code is ErrorCode.topic_authorization_failed:  # which of them it does not say
        return StreamsError(
            f"group {group_id!r} can't be joined: this user has not the right to Describe all "
            f"topics of the topology, or to Create those that are missing ({said}). Add the ACLs "
            f"that {format_command('acls')} lists"
        )
    check_authorized(code, "Read", group_id)
    if code is ErrorCode.group_id_not_found or code is ErrorCode.inconsistent_group_protocol:
        return StreamsError(
            f"group {group_id!r} can't be joined with group_protocol='streams' ({said}): while "
            "members of another protocol run, or have not left yet, it keeps theirs. If they are "
            "of this application, set group_protocol='classic' or 'auto', or end all workers "
            "before the protocol changes (docs/upgrading.md); else choose another application id"
        )
    if message.startswith(_TOPOLOGY_CHANGED):
        return StreamsError(
            f"group {group_id!r} was formed with another topology, and a streams group keeps its "
            f"topology, also while it has no members ({said}).{_list_differences(find_differences)}"
            " If another application has this id, choose another one; else end all workers, start "
            "one with group_protocol='classic', which keeps the offsets and the state, end it, and "
            "start again with group_protocol='streams' (docs/upgrading.md)"
        )
    if code is ErrorCode.unsupported_version:
        return StreamsError(
            f"group_protocol='streams': the brokers don't serve streams groups ({said}): set "
            "group_protocol='classic', or enable the feature streams.version (docs/settings.md)"
        )
    if code is ErrorCode.group_max_size_reached:
        return StreamsError(
            f"group {group_id!r} is full ({said}): run fewer threads (num_stream_threads) or "
            "workers, or raise group.streams.max.size on the brokers"
        )
    return StreamsError(f"group {group_id!r} refused a heartbeat of this member: {said}")


def _list_differences(find_differences: FindDifferences) -> str:
    """Return the sentence that names in what topologies differ; empty where that can't be told."""
    clauses = find_differences()
    if clauses is None:
        return ""
    if not clauses:
        return (
            " The brokers tell no difference: it is in which topics meet by key, or in partitions "
            "of a repartition topic that one of the two declares."
        )
    more = len(clauses) - _CLAUSES_SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    return f" They differ: {'; '.join(clauses[:_CLAUSES_SHOWN])}{rest}."
