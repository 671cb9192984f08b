"""List the points that the doctor looks at, and look at each so that none hides another.

A point fetches its facts and hands them to a check. What can't be fetched is the finding that the
point was not looked at; a missing right is a finding of its own besides.

Points of an application are looked at side by side, as most of them wait for brokers: one after the
other they would add up what each waits for a coordinator that is overloaded. All are looked at on
other threads than the main one, so that the doctor ends at its deadline, or with Ctrl-C, whatever
they wait for.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from state.errors import StateError
from streams.common.counted import format_count
from streams.doctor import application_points, cluster_points
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.cluster_facts import ClusterFacts
from streams.doctor.findings import (
    RIGHTS,
    DoctorFinding,
    create_unknown_finding,
    create_warning_finding,
)
from streams.doctor.side_by_side import call_until_deadline
from streams.doctor.symptom_codes import add_symptom_code
from streams.errors import AuthorizationError, OutcomeUnknown, UserError
from streams.membership.connection import ConnectionLost

log = logging.getLogger(__name__)


_TIME = "time"
_TIME_IS_OVER = "the time of --timeout is over"
_AT_ONCE = 16
"""The points of an application that are looked at side by side; many of them wait for one fact."""
_EXPECTED = (UserError, OutcomeUnknown, ConnectionLost, StateError, OSError)


class Point(NamedTuple):
    """Represents something to look at: its name, and a function that yields what is found."""

    name: str
    look: Callable[[], Iterable[DoctorFinding]]


class PointResult(NamedTuple):
    """Holds what was found at a point until it ended, and the error that ended it, if one did."""

    name: str
    findings: list[DoctorFinding]
    failure: Exception | None = None


def examine_cluster(
    facts: ClusterFacts, *, is_alone: bool, deadline_s: float = math.inf
) -> list[DoctorFinding]:
    """Look at a cluster until a deadline; `is_alone`: no application is looked at besides."""
    points = [
        Point(name, lambda look=look: look(facts))  # type: ignore[misc]
        for name, look in cluster_points.list_cluster_points(is_alone=is_alone)
    ]
    return list(look_at_points(points, deadline_s=deadline_s))


def examine_application(
    facts: ApplicationFacts, *, deadline_s: float = math.inf
) -> list[DoctorFinding]:
    """Look until a deadline at an application, this machine for it, and its topics."""
    points = [
        Point(name, lambda look=look: look(facts))  # type: ignore[misc]
        for name, look in application_points.list_application_points()
    ]
    found = look_at_points(points, _AT_ONCE, deadline_s=deadline_s)
    return [replace(each, application=facts.application_id) for each in found]


def warn_of_points_left(findings: Sequence[DoctorFinding]) -> list[DoctorFinding]:
    """Return the warning that the deadline was there before some points; none if it was not."""
    left_count = sum(each.what == _TIME_IS_OVER for each in findings)
    if not left_count:
        return []
    what = f"{_TIME_IS_OVER}, with {format_count(left_count, 'point')} left"
    consequence = "what is wrong there is not found"
    return [create_warning_finding(_TIME, what, consequence, "look again with a longer --timeout")]


def look_at_points(
    points: Iterable[Point], at_once: int = 1, *, deadline_s: float = math.inf
) -> Iterator[DoctorFinding]:
    """Yield the findings of points, in their order; up to `at_once` are looked at side by side.

    What a point raises is a finding, and the others are looked at. A point that has not been looked
    at when the monotonic clock reaches `deadline_s` is a finding that says so.

    Messages offer commands as the doctor was called, by the context, in which points that are
    looked at one after the other note more: those of a cluster its servers.
    """
    points = list(points)
    results = call_until_deadline(_look_at_point, points, at_once, deadline_s)
    missing: dict[tuple[str, str, str], AuthorizationError] = {}
    told: set[str] = set()
    for point, result in zip(points, results, strict=True):
        if result is None:
            yield create_unknown_finding(point.name, _TIME_IS_OVER)
            continue
        name, found, failure = result
        for each in found:
            told.add(each.what)
            yield add_symptom_code(each)
        if isinstance(failure, AuthorizationError):
            missing.setdefault((failure.operation, failure.resource, failure.name), failure)
        if failure is not None:
            yield _describe_failure(name, failure)
    for lacked in missing.values():
        what = f"this user may not {lacked.operation} {lacked.resource} {lacked.name}"
        if what in told:
            continue
        warning = create_warning_finding(
            RIGHTS,
            what,
            "points are not looked at; an application with this user may lack it, too",
            str(lacked),
        )
        yield add_symptom_code(warning)


def _look_at_point(point: Point) -> PointResult:
    """Return the findings of a point, and the error that stopped it, or None."""
    name, look = point
    found: list[DoctorFinding] = []
    try:
        found.extend(look())
    except Exception as error:
        return PointResult(name, found, error)
    return PointResult(name, found)


def _describe_failure(point: str, failure: Exception) -> DoctorFinding:
    """Return the finding of a point that could not be looked at for an error."""
    if isinstance(failure, AuthorizationError):
        right = f"{failure.operation} on {failure.resource} {failure.name}"
        return create_unknown_finding(point, f"the right {right} is missing")
    if isinstance(failure, _EXPECTED):
        return create_unknown_finding(point, str(failure))
    # A fault of the doctor itself hides no other point.
    log.debug("%s could not be looked at", point, exc_info=failure)
    return create_unknown_finding(point, f"the doctor failed here, please report it: {failure!r}")
