"""Check the group of an application: its members, who they are, and what nobody reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.doctor.topics import name_partitions
from streams.membership.application_group import STREAMS
from streams.monitoring.group_report import STABLE, GroupReport, MemberReport
from streams.runtime.offsets.offset_metadata import is_streams_metadata

FOREIGN = "members of others"
_CLASSIC = "classic"
MEMBERS, UNREAD, IDENTITY, OFFSETS = "members", "unread partitions", "identities", "offsets"
NO_WORKER = "no worker runs"


def check_foreign_members(refusal: str, protocols: Collection[str]) -> Iterator[DoctorFinding]:
    """Find members of another program in the group of the application.

    `refusal` says why the members can't be read, empty if they can; `protocols` are those of the
    groups of this name.
    """
    others = sorted(set(protocols) - {_CLASSIC, STREAMS})
    if others:
        refusal = f"the group is of the protocol {', '.join(others)}, and not of this application"
    if refusal:
        yield create_error_finding(
            FOREIGN,
            refusal,
            "a consumer or another application has this id: one takes the partitions and the "
            "offsets of the other, and workers are refused",
            "give that program another group.id; who it is: " + format_command("group list"),
        )
    else:
        yield create_fine_finding(FOREIGN, "none")


def check_unknown_application(
    application_id: str, near: Sequence[str], others: Sequence[str]
) -> Iterator[DoctorFinding]:
    """Say that a cluster has nothing of an application, and which ids it may have meant.

    `near` are ids of groups that are spelt alike, `others` all.
    """
    named = near or others
    known = f"; it has {name_partitions(list(named))}" if named else ", and no group at all"
    meant = " or ".join(map(repr, near[:2]))
    yield create_warning_finding(
        MEMBERS,
        f"this user sees no group {application_id!r} in the cluster, and no topic of that "
        f"application{known}",
        "nothing was found to look at: what is fine below says nothing of an application",
        (f"is {meant} meant? " if near else "")
        + f"Give the application's id as {format_command('group list')} shows it, or MODULE:APP",
    )


def check_members(report: GroupReport) -> Iterator[DoctorFinding]:
    """Find a group without members, in a rebalance, or with a member that is to end."""
    if not report.members:
        yield create_warning_finding(
            MEMBERS,
            NO_WORKER,
            "nothing is processed, and inputs may lose records by their retention meanwhile",
            f"start workers; how the last one ended: {format_command('doctor', '--logs', 'FILE')} "
            "with its log names the cause",
        )
        return
    problems = [each for each in report.members if each.problem]
    for each in problems:
        yield create_error_finding(
            MEMBERS,
            f"member {_name_member(each)} is to end: {each.problem}",
            "its tasks are processed by the others, or by nobody",
            "correct what the message says, and start it again",
        )
    if report.state != STABLE:
        yield create_warning_finding(
            MEMBERS,
            f"{format_count(len(report.members), 'member')}, and the group is {report.state}",
            "in a rebalance tasks may stand still, and brokers don't tell who has them",
            f"look again in a moment; if it goes on, {format_command('group describe')}",
        )
    elif not problems:
        standby = sum(len(each.standby) for each in report.members)
        active = sum(len(each.active) for each in report.members)
        yield create_fine_finding(
            MEMBERS,
            f"{format_count(len(report.members), 'member')}, {active} active and {standby} standby "
            "tasks",
        )


def check_unread(report: GroupReport) -> Iterator[DoctorFinding]:
    """Find partitions of inputs that no member reads, in a stable group."""
    if not report.members or report.state != STABLE:
        return
    if report.unassigned:
        names = [f"{each.topic}[{each.partition}]" for each in report.unassigned]
        yield create_warning_finding(
            UNREAD,
            f"no member reads {name_partitions(names)}",
            "their records wait; for a moment that is so while a task moves",
            f"look again: {format_command('group describe')}",
        )
    else:
        yield create_fine_finding(UNREAD, "none")


def check_versions(report: GroupReport) -> Iterator[DoctorFinding]:
    """Find members of different versions of the topology."""
    versions = {each.topology for each in report.members if each.topology}
    if len(versions) > 1:
        yield create_warning_finding(
            "topology",
            f"members run {len(versions)} versions of the topology: {_name_versions(report)}",
            "that is so in a rolling upgrade; else somebody runs another application by this id",
            "end the upgrade, or the members of the other version: "
            + format_command("group describe"),
        )


def _name_versions(report: GroupReport) -> str:
    """Return each version of the topology, by its fingerprint, with the hosts that run it."""
    hosts: dict[str, set[str]] = {}
    for each in report.members:
        if each.topology:
            hosts.setdefault(each.topology[:8], set()).add(f"{each.host} ({_name_member(each)})")
    return "; ".join(f"{name} at {', '.join(sorted(at))}" for name, at in sorted(hosts.items()))


def check_identities(report: GroupReport) -> Iterator[DoctorFinding]:
    """Find one state directory's id at two hosts, as after a copy of a machine's disk."""
    hosts: dict[str, set[str]] = {}
    for each in report.members:
        if each.directory:
            hosts.setdefault(each.directory, set()).add(each.host)
    doubled = {name: found for name, found in hosts.items() if len(found) > 1}
    for name, found in doubled.items():
        yield create_error_finding(
            IDENTITY,
            f"the id {name} of a state directory is used at {', '.join(sorted(found))}",
            "the workers have one identity: they fence each other and take each other's tasks",
            "end the workers at one of them, and remove directory-id and process-*/id in the copy",
        )
    if not doubled and report.members:
        yield create_fine_finding(
            IDENTITY, f"{format_count(len(hosts), 'state directory', 'directories')}"
        )


def check_committed_offsets(
    committed: Mapping[Partition, OffsetAndMetadata],
) -> Iterator[DoctorFinding]:
    """Find offsets that another program has committed for the group."""
    foreign = [
        str(partition)
        for partition, held in sorted(committed.items())
        if not is_streams_metadata(held.metadata)
    ]
    if foreign:
        yield create_error_finding(
            OFFSETS,
            f"offsets of {name_partitions(foreign)} were committed by another program",
            "a consumer or a tool uses this group's id: records are skipped or processed again",
            "give that program another group.id; then "
            + format_command("group restore-offsets", "--dry-run"),
        )
    elif committed:
        yield create_fine_finding(
            OFFSETS, f"{format_count(len(committed), 'partition')}, all by Millrace"
        )


def _name_member(member: MemberReport) -> str:
    return member.instance_id or member.member_id
