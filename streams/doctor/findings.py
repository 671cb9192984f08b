"""Say what the doctor has found at one point: that all is well, what is wrong, or what is unknown.

    verdict         what it says                               exit status
    fine            the figure that was looked at              0
    warning         what may go wrong, and what mends it       1
    error           what is wrong now, and what mends it       2
    not looked at   why it is not known                        0

What could not be looked at for a missing right is a warning of the point `rights` besides, and what
the deadline has cut off is one of the point `time`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from streams.common.exit_status import ExitStatus


class Verdict(StrEnum):
    """Names what was found at a point; the worst is first."""

    ERROR = "error"
    WARNING = "warning"
    NOT_LOOKED_AT = "not looked at"
    FINE = "fine"


CONNECTION, RIGHTS, VERSION = "connection", "rights", "version"
_BASES = (CONNECTION, RIGHTS, VERSION)


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """Says what was found at a point: what is so, what it can lead to, and what mends it.

    `application` is empty where the finding is of the machine or the cluster, `code` (MR-0xx) where
    no page says more.
    """

    point: str
    verdict: Verdict
    what: str
    consequence: str = ""
    remedy: str = ""
    application: str = ""
    code: str = ""


def create_fine_finding(point: str, what: str) -> DoctorFinding:
    """Return the finding that a point is as it should be; `what` has the figure."""
    return DoctorFinding(point, Verdict.FINE, what)


def create_warning_finding(point: str, what: str, consequence: str, remedy: str) -> DoctorFinding:
    """Return the finding that something may go wrong."""
    return DoctorFinding(point, Verdict.WARNING, what, consequence, remedy)


def create_error_finding(point: str, what: str, consequence: str, remedy: str) -> DoctorFinding:
    """Return the finding that something is wrong now."""
    return DoctorFinding(point, Verdict.ERROR, what, consequence, remedy)


def create_unknown_finding(point: str, why: str) -> DoctorFinding:
    """Return the finding that a point could not be looked at."""
    return DoctorFinding(point, Verdict.NOT_LOOKED_AT, why)


def choose_status(findings: Iterable[DoctorFinding]) -> ExitStatus:
    """Return the exit status: 2 with errors, 1 with warnings, else 0."""
    verdicts = {each.verdict for each in findings}
    if Verdict.ERROR in verdicts:
        return 2
    return 1 if Verdict.WARNING in verdicts else 0


def sort_findings(findings: Iterable[DoctorFinding]) -> list[DoctorFinding]:
    """Return findings with the worst first, and otherwise in their order.

    Among findings of one verdict the points on which others rest come before these.
    """
    order = list(Verdict)
    return sorted(findings, key=lambda each: (order.index(each.verdict), each.point not in _BASES))
