"""List the points that the doctor looks at, and look at each so that none hides another.

A point fetches its facts and hands them to a check. What can't be fetched is the finding that the
point was not looked at; a missing right is a finding of its own besides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from state.errors import StateError
from streams.doctor import application_points, cluster_points
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.cluster_facts import ClusterFacts
from streams.doctor.findings import (
    RIGHTS,
    DoctorFinding,
    create_unknown_finding,
    create_warning_finding,
)
from streams.doctor.symptom_codes import add_symptom_code
from streams.errors import AuthorizationError, OutcomeUnknown, UserError
from streams.membership.connection import ConnectionLost

log = logging.getLogger(__name__)


_EXPECTED = (UserError, OutcomeUnknown, ConnectionLost, StateError, OSError)


class Point(NamedTuple):
    """Represents something to look at: its name, and a function that yields what is found."""

    name: str
    look: Callable[[], Iterable[DoctorFinding]]


def examine_cluster(facts: ClusterFacts, *, is_alone: bool) -> list[DoctorFinding]:
    """Look at a cluster; `is_alone`: no application is looked at besides."""
    points = [
        Point(name, lambda look=look: look(facts))  # type: ignore[misc]
        for name, look in cluster_points.list_points(is_alone=is_alone)
    ]
    return list(look_at_points(points))


def examine_application(facts: ApplicationFacts) -> list[DoctorFinding]:
    """Look at an application, at this machine for it, and at its topics on the cluster."""
    points = [
        Point(name, lambda look=look: look(facts))  # type: ignore[misc]
        for name, look in application_points.list_points()
    ]
    return [replace(each, application=facts.application_id) for each in look_at_points(points)]


def look_at_points(points: Iterable[Point]) -> Iterator[DoctorFinding]:
    """Yield the findings of points; what one raises is a finding, and the others are looked at."""
    missing: dict[tuple[str, str, str], AuthorizationError] = {}
    told: set[str] = set()
    for name, look in points:
        try:
            for each in look():
                told.add(each.what)
                yield add_symptom_code(each)
        except AuthorizationError as error:
            missing.setdefault((error.operation, error.resource, error.name), error)
            yield create_unknown_finding(
                name, f"the right {error.operation} on {error.resource} {error.name} is missing"
            )
        except _EXPECTED as error:
            yield create_unknown_finding(name, str(error))
        except Exception as error:  # a fault of the doctor itself hides no other point
            log.debug("%s could not be looked at", name, exc_info=True)
            yield create_unknown_finding(
                name, f"the doctor failed here, please report it: {error!r}"
            )
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
