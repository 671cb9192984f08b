"""Test that producers which fence each other are found by their epochs."""

from __future__ import annotations

import pytest

from streams.doctor.findings import Verdict
from streams.doctor.producer_epochs import ProducerEpochs, check_epochs, find_contested_ids
from streams.monitoring.group_report import GroupReport
from tests.unit.streams.doctor.test_checks import member, report

NAME = "app-5d49-0"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({NAME: (1, 3)}, {NAME: (1, 3)}, {}),
        ({NAME: (1, 3)}, {NAME: (1, 4)}, {}),  # a worker was started again
        ({NAME: (1, 3)}, {NAME: (1, 6)}, {NAME: 3}),
        ({NAME: (1, 3)}, {NAME: (2, 0)}, {}),  # the epochs were used up: another producer id
        ({}, {NAME: (1, 7)}, {}),
    ],
)
def test_ids_that_are_taken_over_again_and_again(
    before: ProducerEpochs, after: ProducerEpochs, expected: dict[str, int]
) -> None:
    assert find_contested_ids(before, after) == expected


def look_at(fought_over: dict[str, int], found: GroupReport) -> list[str]:
    return [f"{each.verdict}: {each.what}" for each in check_epochs(fought_over, [NAME], found)]


def test_the_members_with_the_identity_are_named() -> None:
    (found,) = look_at({NAME: 3}, report(member("app-5d49-0", "h7", process="5d49")))
    assert found.startswith(f"warning: the transactional id '{NAME}' was taken over 3 times")
    assert "app-5d49-0 at h7" in found
    (fine,) = look_at({}, report())
    assert fine.startswith(str(Verdict.FINE))
