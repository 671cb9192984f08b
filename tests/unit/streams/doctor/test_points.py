"""Test that what can't be looked at hides no other point, and what the status is."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier

import pytest

from streams.command_lines import format_command, hold_invocation, note_invocation
from streams.doctor import application_points, cluster_points
from streams.doctor.doctor_command import merge_findings_not_looked_at
from streams.doctor.findings import (
    RIGHTS,
    DoctorFinding,
    Verdict,
    choose_status,
    create_error_finding,
    create_fine_finding,
    create_unknown_finding,
    create_warning_finding,
    sort_findings,
)
from streams.doctor.points import Point, look_at_points
from streams.doctor.symptom_codes import CODES
from streams.errors import AuthorizationError, OutcomeUnknown
from streams.symptoms.lookup import find_by_code
from tests.processes import HANG_LIMIT_S

FINE = create_fine_finding("a", "1")
WARNING = create_warning_finding("b", "2", "leads", "do")
ERROR = create_error_finding("c", "3", "leads", "do")
UNKNOWN = create_unknown_finding("d", "4")


def fail_with(error: Exception) -> Point:
    def look() -> Iterator[DoctorFinding]:
        yield FINE
        raise error

    return Point("failing", look)


@pytest.mark.parametrize(
    ("findings", "status"),
    [([], 0), ([FINE, UNKNOWN], 0), ([FINE, WARNING, UNKNOWN], 1), ([WARNING, ERROR], 2)],
)
def test_the_status_is_that_of_the_worst_verdict(
    findings: list[DoctorFinding], status: int
) -> None:
    assert choose_status(findings) == status


def test_the_worst_is_first() -> None:
    listed = sort_findings([FINE, UNKNOWN, WARNING, ERROR, FINE])
    assert [each.point for each in listed] == ["c", "b", "d", "a", "a"]


@pytest.mark.parametrize(
    "error", [OutcomeUnknown("no answer"), OSError("disk"), KeyError("a fault of ours")]
)
def test_a_point_that_fails_hides_no_other(error: Exception) -> None:
    found = list(look_at_points([fail_with(error), Point("next", lambda: [ERROR])]))
    assert [each.verdict for each in found] == [Verdict.FINE, Verdict.NOT_LOOKED_AT, Verdict.ERROR]
    assert found[1].point == "failing"
    assert str(error) in found[1].what


def test_a_missing_right_is_a_point_of_its_own_once() -> None:
    missing = fail_with(AuthorizationError("DescribeConfigs", "topic", "lines"))
    found = list(look_at_points([missing, missing]))
    rights = [each for each in found if each.point == RIGHTS]
    assert len(rights) == 1
    assert "DescribeConfigs topic lines" in rights[0].what
    assert [each.verdict for each in found].count(Verdict.NOT_LOOKED_AT) == 2


def test_a_missing_right_that_a_point_names_is_not_told_again() -> None:
    missing = fail_with(AuthorizationError("Describe", "topic", "lines"))
    named = create_error_finding(RIGHTS, "this user may not Describe topic lines", "leads", "do")
    found = list(look_at_points([missing, Point(RIGHTS, lambda: [named])]))
    assert [each.verdict for each in found if each.point == RIGHTS] == [Verdict.ERROR]


def test_missing_rights_come_before_what_rests_on_them() -> None:
    listed = sort_findings([ERROR, create_error_finding(RIGHTS, "may not", "leads", "do")])
    assert [each.point for each in listed] == [RIGHTS, "c"]


def test_points_without_an_answer_for_one_reason_are_one_line() -> None:
    apart = [create_unknown_finding("e", "4"), UNKNOWN, create_unknown_finding("f", "5"), ERROR]
    assert [each.point for each in merge_findings_not_looked_at(apart)] == ["e, d", "f", "c"]


def test_what_an_error_says_is_not_repeated_for_the_points_behind_it() -> None:
    broken = create_error_finding("connection", "no broker answers", "leads", "do")
    (_, behind) = merge_findings_not_looked_at(
        [broken, create_unknown_finding("brokers", "no broker answers")]
    )
    assert behind.what == "for the error above"


def test_each_code_of_a_point_is_one_that_is_explained() -> None:
    assert [code for code in CODES.values() if find_by_code(code) is None] == []
    names = [name for name, _ in cluster_points.list_cluster_points(is_alone=True)]
    names += [name for name, _ in application_points.list_application_points()]
    assert CODES.keys() - set(names) == {"transaction time-out", "skew of keys"}


def test_a_fault_has_the_code_of_its_message_or_else_of_its_point() -> None:
    point = Point(
        "skew of keys", lambda: [create_warning_finding("skew of keys", "one", "leads", "do")]
    )
    (by_point,) = look_at_points([point])
    told = create_error_finding("connection", "TOPIC_AUTHORIZATION_FAILED", "leads", "do")
    (by_message,) = look_at_points([Point("connection", lambda: [told])])
    (fine,) = look_at_points([Point("skew of keys", lambda: [FINE])])
    assert (by_point.code, by_message.code, fine.code) == ("MR-063", "MR-044", "")


def test_points_wait_side_by_side_and_are_told_in_their_order() -> None:
    both = Barrier(2)

    def wait_and_find(found: DoctorFinding) -> Point:
        def look() -> Iterator[DoctorFinding]:
            both.wait(HANG_LIMIT_S)
            yield found

        return Point(found.point, look)

    points = [wait_and_find(FINE), fail_with(OSError("disk")), wait_and_find(ERROR)]
    found = list(look_at_points(points, at_once=3))
    assert [each.point for each in found] == ["a", "a", "failing", "c"]


def test_points_beside_each_other_offer_commands_as_the_doctor_was_called() -> None:
    def look() -> Iterator[DoctorFinding]:
        yield create_fine_finding("a", format_command("group reset"))

    with hold_invocation(application_id="orders"):
        found = list(look_at_points([Point("a", look)] * 2, at_once=2))
    assert all("group reset orders" in each.what for each in found)


def test_what_points_of_a_cluster_note_of_it_is_in_the_commands_of_later_messages() -> None:
    def note_servers() -> list[DoctorFinding]:
        note_invocation(bootstrap_servers="kafka-1:9092", servers="kafka-1:9092")
        return []

    def advise() -> list[DoctorFinding]:
        return [create_unknown_finding("next", format_command("topics describe", "words"))]

    def advise_side_by_side() -> list[str]:
        return [each.what for each in look_at_points([Point("next", advise)] * 2, at_once=2)]

    with hold_invocation():
        (found,) = look_at_points([Point("connection", note_servers), Point("next", advise)])
        advices = [found.what, *advise_side_by_side()]
    assert len(advices) == 3
    assert all("--bootstrap-servers kafka-1:9092" in each for each in advices), advices
