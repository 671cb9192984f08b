"""Mark findings that follow from another one, so that its remedy is the one that is tried.

    an error of the point             may lead to
    connection                        workers that say that no broker, or no group, answers
    disks of brokers, disk space      workers that don't commit, or start over
    processing time                   the same: a record takes longer than its transaction may
    next records, certificates,       no worker that runs: each ends there
    topics, internal topics and
    others (`_ENDING`)

and two warnings do: where quotas throttle workers, or coordinators answer late, commits take long.

A worker that does not answer at all is told for itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from streams.doctor import (
    broker_disks,
    group,
    inputs,
    machine,
    recreated_inputs,
    security,
    stores,
    topics,
    workers,
)
from streams.doctor.coordinators import COORDINATORS
from streams.doctor.findings import CONNECTION, RIGHTS, VERSION, DoctorFinding, Verdict
from streams.doctor.throttling import QUOTAS

_ROOTS = (CONNECTION, broker_disks.BROKER_DISKS, machine.DISK, workers.BUSY)
_ENDING = (
    *(inputs.NEXT_RECORDS, inputs.COPARTITIONS, inputs.RETENTION, recreated_inputs.INPUTS),
    *(CONNECTION, RIGHTS, VERSION, security.CERTIFICATES, machine.DISK, machine.INODES),
    *(topics.TOPICS, stores.INTERNAL, stores.COUNTS),
)
"""The points whose errors end workers, or refuse their start."""
_WAITING = re.compile("the oldest unread record of|no record of .+ is known")
"""The texts of what is lost while no worker runs: none is of an error that ends one."""
_ROOTS_OF_COMMITS = (QUOTAS, COORDINATORS)
_FOLLOWING = (workers.HEALTH, workers.COMMITS, workers.RECOVERIES)
_NOT_ANSWERING = re.compile(r"the worker at \S+ does not answer|nothing listens")
_WITHOUT_BROKER = re.compile(
    "no broker answers|no leader answers|no answer from its group"
    "|waits for the answer to a heartbeat|the coordinator of .+ does not answer"
)
"""What a worker's health says where it can't reach brokers (`streams.monitoring.health`)."""


def mark_consequences(findings: Sequence[DoctorFinding]) -> list[DoctorFinding]:
    """Return findings, where those that may follow from an error say so instead of their remedy."""
    errors = [each for each in findings if each.verdict is Verdict.ERROR]
    roots = [each for point in _ROOTS for each in errors if each.point == point]
    warnings = [each for each in findings if each.verdict is Verdict.WARNING]
    roots += [each for point in _ROOTS_OF_COMMITS for each in warnings if each.point == point]
    marked = []
    for finding in findings:
        if finding.point == group.MEMBERS and finding.what == group.NO_WORKER:
            finding = _name_errors_that_end_workers(finding, errors)
        root = next((each for each in roots if _may_follow(finding, each)), None)
        if root is not None:
            remedy = f"it may follow from the {root.verdict} of the point {root.point!r}: "
            finding = replace(finding, remedy=f"{remedy}mend that first, and look again")
        marked.append(finding)
    return marked


def _name_errors_that_end_workers(
    finding: DoctorFinding, errors: Sequence[DoctorFinding]
) -> DoctorFinding:
    """Return the finding that no worker runs, with the points whose errors may be the reason."""
    ending = dict.fromkeys(
        repr(each.point)
        for each in errors
        if each.point in _ENDING
        and each.application in ("", finding.application)
        and _WAITING.match(each.what) is None
    )
    if not ending:
        return finding
    points = f"error of the point {next(iter(ending))}"
    if len(ending) > 1:
        points = f"errors of the points {', '.join(ending)}"
    remedy = f"it may follow from the {points}, which ends workers: mend that first, then start "
    return replace(finding, remedy=f"{remedy}workers; the last one's log ends with why it ended")


def _may_follow(finding: DoctorFinding, root: DoctorFinding) -> bool:
    return (
        finding.point in _FOLLOWING
        and finding.verdict in (Verdict.ERROR, Verdict.WARNING)
        and root.application in ("", finding.application)
        and (root.point not in _ROOTS_OF_COMMITS or finding.point == workers.COMMITS)
        and _NOT_ANSWERING.match(finding.what) is None
        and (root.point != CONNECTION or _WITHOUT_BROKER.search(finding.what) is not None)
    )
