"""Find producers that fence each other, by the epochs of their transactional ids between two looks.

Each producer that takes a transactional id over gets a new epoch, and the one before is fenced. A
worker that is started again takes it over once. Two that take turns raise it again and again. Only
ids of workers are looked at: clients that speak transactions v2 (KIP-890), as Java's do, get a new
epoch with each commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.doctor.findings import DoctorFinding, create_fine_finding, create_warning_finding
from streams.doctor.local_workers import FENCING
from streams.monitoring.group_report import GroupReport

_TAKEN_OVER_MIN = 2

ProducerEpochs = Mapping[str, tuple[int, int]]
"""The id and the epoch of the producer of each transactional id."""


def find_contested_ids(before: ProducerEpochs, after: ProducerEpochs) -> dict[str, int]:
    """Return how often each transactional id was taken over between two looks, if several times."""
    found = {}
    for transactional_id, (producer, epoch) in after.items():
        former, then = before.get(transactional_id, (producer, epoch))
        if former == producer and epoch - then >= _TAKEN_OVER_MIN:
            found[transactional_id] = epoch - then
    return found


def check_epochs(
    fought_over: Mapping[str, int], known: Collection[str], report: GroupReport
) -> Iterator[DoctorFinding]:
    """Name transactional ids that several producers take from each other, with members' hosts."""
    for transactional_id, count in sorted(fought_over.items()):
        members = [
            f"{each.instance_id or each.member_id} at {each.host}"
            for each in report.members
            if each.process and each.process in transactional_id
        ]
        holder = f"; the group has {', '.join(members)}" if members else ""
        yield create_warning_finding(
            FENCING,
            f"the transactional id {transactional_id!r} was taken over "
            f"{format_count(count, 'time')} between two looks, each time by a new epoch{holder}",
            "two producers with one id fence each other: both lose their transactions, again and "
            "again",
            "look for a second process with a copy of that worker's state directory, on this host "
            f"and others ({format_command('group describe')} shows the hosts), and end it; or for "
            "another program with this transactional.id",
        )
    if known and not fought_over:
        ids = format_count(len(known), "transactional id")
        yield create_fine_finding(FENCING, f"{ids}, none taken over again and again")
