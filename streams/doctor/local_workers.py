"""Check that the workers of this machine are members of their group, and that no two share an id.

A worker that was taken for dead, as it hung or was stopped for longer than its session, is a
zombie: it holds its slot of the state directory, and the group has no member of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from state.directory import LOCK_FILE
from state.errors import DirectoryLocked
from state.linux_calls import is_stopped
from state.locks import LockHolder, exclude_owner, read_holder
from streams.common.counted import format_count
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.doctor.stopped_processes import suggest_continue_command
from streams.membership.group_description import GroupDescription
from streams.monitoring.group_report import STABLE, GroupReport

ZOMBIES, FENCING, DIRECTORY = "zombies", "fencing", "state directory"


@dataclass(frozen=True, slots=True)
class LocalWorker:
    """Names a worker that has a slot of a state directory here, by its lock and its id.

    `holder` describes the process that `lock_holder` has.
    """

    slot: str
    process: str
    holder: str
    lock_holder: LockHolder

    def find_stopped_process(self) -> int | None:
        """Return the id of its process if that is of this machine, and stopped by a signal."""
        process_id, is_of_this_host = self.lock_holder
        return process_id if is_of_this_host and is_stopped(process_id) else None


def find_workers_by_directory_locks(application_directory: Path) -> list[LocalWorker]:
    """Return the workers that hold a slot of an application's state directory."""
    found = []
    for lock in sorted(application_directory.glob(f"process-*/{LOCK_FILE}")):
        try:
            with exclude_owner(lock):
                continue
        except DirectoryLocked as error:
            holder = str(error).rpartition(" in use by ")[2]
        try:
            identity = (lock.parent / "id").read_text().strip()
        except OSError:
            continue
        found.append(LocalWorker(lock.parent.name, identity, holder, read_holder(lock)))
    return found


def check_state_directory(path: Path, removed: Mapping[int, Path]) -> Iterator[DoctorFinding]:
    """Find workers whose state directory was removed under them: `removed` locks, by process id."""
    for process in sorted(removed):
        yield create_error_finding(
            DIRECTORY,
            f"process {process} runs in {path}, which was removed under it, or what was in it",
            "it goes on until it has to create a file there, and ends then; what it has on the "
            "disk is lost, and in the changelogs",
            f"end it and start it again: `kill {process}`; its stores are restored",
        )


def check_zombies(local: list[LocalWorker], report: GroupReport) -> Iterator[DoctorFinding]:
    """Find workers of this machine that are not in the group."""
    if report.members and report.state != STABLE:
        return  # in a rebalance brokers don't tell the processes of members
    members = {each.process for each in report.members}
    without = [each for each in local if each.process not in members]
    for each in without:
        process = each.find_stopped_process()
        yield create_error_finding(
            ZOMBIES,
            f"{each.holder} runs in {each.slot}, and the group has no member of it",
            "it was taken for dead: it "
            + ("hangs, or has just begun" if process is None else "is stopped by a signal")
            + "; what it writes is fenced, and others have its tasks",
            f"{suggest_continue_command(process)}; or end it and start another one"
            if process is not None
            else "look what it does (`ps`, its log, /health), or end it and start another one",
        )
    if local and not without:
        yield create_fine_finding(
            ZOMBIES, f"{format_count(len(local), 'worker')} here, all in the group"
        )


def check_fencing(
    before: GroupDescription | None, after: GroupDescription | None
) -> Iterator[DoctorFinding]:
    """Find static members that changed their member id between two looks.

    Either their worker was started again meanwhile, or two take turns: the group can't tell which.
    """
    first, second = _list_static_members(before), _list_static_members(after)
    changed = sorted(
        instance
        for instance, member in second.items()
        if instance in first and first[instance] != member
    )
    for instance in changed:
        yield create_warning_finding(
            FENCING,
            f"member {instance} was joined anew by another process between two looks",
            "its worker was ended and started again, or two workers have one identity, of a "
            "copied state directory, and fence each other",
            "look at the logs of its workers: `was ended by` says that one was started again, and "
            "why. If two run, end one; the directory-id and process-*/id of the copy are to be "
            "removed while none runs there",
        )
    if second and not changed:
        yield create_fine_finding(FENCING, "no member was replaced while it was looked at")


def _list_static_members(group: GroupDescription | None) -> Mapping[str, str]:
    """Return the member ids of static members by their instance ids."""
    members = () if group is None else group.members
    return {each.instance_id: each.member_id for each in members if each.instance_id}
