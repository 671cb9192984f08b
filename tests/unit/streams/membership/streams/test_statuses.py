"""Test what the statuses of a streams group come to: a message with its code, a warning, an end."""

from __future__ import annotations

import pytest

from streams.membership.streams.statuses import (
    GroupStatus,
    GroupStatusCode,
    explain_fatal_status,
    explain_lasting_status,
    explain_statuses,
    find_shutdown,
    is_group_ready,
)
from streams.symptoms.lookup import find_by_message

SAID = "what the broker says."
LATER_STATUS = 99  # of a release to come
LASTING = {GroupStatusCode.MISSING_SOURCE_TOPICS, GroupStatusCode.MISSING_INTERNAL_TOPICS}


def report(code: int) -> list[GroupStatus]:
    return [GroupStatus(code, SAID)]


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (GroupStatusCode.STALE_TOPOLOGY, "MR-033", "the version of the application"),
        (GroupStatusCode.MISSING_SOURCE_TOPICS, "MR-035", "create-topics"),
        (GroupStatusCode.MISSING_INTERNAL_TOPICS, "MR-035", "its log tells what keeps it"),
    ],
)
def test_a_status_that_may_pass_is_a_warning_with_its_code(
    status: GroupStatusCode, code: str, advice: str
) -> None:
    message = explain_statuses("orders", report(status))
    assert message.startswith("group 'orders' ")
    assert SAID in message
    assert advice in message
    symptom = find_by_message(message)
    assert symptom is not None
    assert symptom.code == code
    assert bool(explain_lasting_status("orders", report(status))) == (status in LASTING)
    assert explain_fatal_status("orders", report(status)) == ""


@pytest.mark.parametrize(
    ("detail", "named"),
    [
        ("Source topics lines are missing.", "lines"),
        ("Source topics a, b.c, d are missing.", "a b.c d"),
        ("Source topics a, b, c and 2 additional topics are missing.", "a b c"),
        ("Words of a later release.", "TOPIC"),
    ],
)
def test_the_command_creates_the_topics_that_the_broker_names(detail: str, named: str) -> None:
    status = GroupStatus(GroupStatusCode.MISSING_SOURCE_TOPICS, detail)
    assert f"create-topics {named}`" in explain_lasting_status("orders", [status])


def test_what_the_broker_says_ends_with_one_full_stop() -> None:
    status = GroupStatus(GroupStatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: a")
    assert "are missing: a. The broker" in explain_lasting_status("orders", [status])
    assert f"{SAID} The broker" in explain_lasting_status("orders", report(status.code))


def test_wrong_partition_counts_end_the_thread_with_their_code() -> None:
    message = explain_fatal_status("orders", report(GroupStatusCode.INCORRECTLY_PARTITIONED_TOPICS))
    assert SAID in message
    assert "group reset" in message
    symptom = find_by_message(message)
    assert symptom is not None
    assert symptom.code == "MR-036"


@pytest.mark.parametrize(
    "status", [GroupStatusCode.ASSIGNMENT_DELAYED, GroupStatusCode.SHUTDOWN_APPLICATION]
)
def test_a_status_that_passes_by_itself_or_ends_all_is_no_warning(status: GroupStatusCode) -> None:
    assert explain_statuses("orders", report(status)) == ""
    assert explain_fatal_status("orders", report(status)) == ""
    is_shutdown = status is GroupStatusCode.SHUTDOWN_APPLICATION
    assert find_shutdown(report(status)) == (SAID if is_shutdown else "")


def test_a_status_of_a_later_release_is_told_in_the_words_of_the_broker() -> None:
    message = explain_statuses("orders", report(LATER_STATUS))
    assert message.endswith(f"a status that this release does not know: {SAID}")
    assert is_group_ready(report(LATER_STATUS))


@pytest.mark.parametrize("status", GroupStatusCode)
def test_a_group_is_ready_unless_its_tasks_can_not_be_assigned(status: GroupStatusCode) -> None:
    ready = {GroupStatusCode.STALE_TOPOLOGY, GroupStatusCode.SHUTDOWN_APPLICATION}
    assert is_group_ready(report(status)) == (status in ready)


def test_all_statuses_of_an_answer_are_told() -> None:
    told = explain_statuses(
        "orders",
        [*report(GroupStatusCode.STALE_TOPOLOGY), *report(GroupStatusCode.MISSING_SOURCE_TOPICS)],
    )
    assert "has no tasks yet" in told
    assert "has a newer topology" in told
