"""Explain the codes with which a broker refuses a streams member for good."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from streams.command_lines import format_command
from streams.errors import StreamsError
from streams.membership.authorization import check_authorized

_TOPOLOGY_CHANGED = "Topology updates are not supported"
"""How Kafka's message begins for a member with another topology than its group's (4.2 to 4.4)."""


def explain_refusal(group_id: str, code: ErrorCode, message: str) -> StreamsError:
    """Return the error for a heartbeat that was refused.

    Raises: AuthorizationError.
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
            f"topology, also while it has no members ({said}). If another application has this id, "
            "choose another one; else end all workers, start one with group_protocol='classic', "
            "which keeps the offsets and the state, end it, and start again with "
            "group_protocol='streams' (docs/upgrading.md)"
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
