"""Test what the statuses of a streams group come to: a message with its code, a warning, an end."""

from __future__ import annotations

import pytest

from streams.membership.streams.statuses import (
    GroupStatus,
    GroupStatusCode,
    explain_fatal_status,
    explain_lasting_status,
    explain_passing_statuses,
    find_shutdown_reason,
    is_group_ready,
)
from streams.symptoms.lookup import find_by_message

SAID = "what the broker says."
LATER_STATUS = 99  # of a release to come


def report(code: int) -> list[GroupStatus]:
    return [GroupStatus(code, SAID)]


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (GroupStatusCode.MISSING_SOURCE_TOPICS, "create-topics"),
        (GroupStatusCode.MISSING_INTERNAL_TOPICS, "its log tells what keeps it"),
    ],
)
@pytest.mark.parametrize(("had_tasks", "since"), [(False, "yet"), (True, "any more")])
def test_topics_that_are_missing_are_a_message_with_its_code(
    status: GroupStatusCode, advice: str, had_tasks: bool, since: str
) -> None:
    message = explain_lasting_status("orders", report(status), had_tasks=had_tasks)
    assert message.startswith(f"group 'orders' has no tasks {since}, the broker says: {SAID} ")
    assert advice in message
    symptom = find_by_message(message)
    assert symptom is not None
    assert symptom.code == "MR-035"
    assert explain_fatal_status("orders", report(status)) == ""
    assert explain_passing_statuses("orders", report(status)) == ""


@pytest.mark.parametrize(
    ("had_tasks", "counts", "command"),
    [
        (False, {}, "create-topics in rows --partitions NUMBER"),
        (True, {"in": 4, "rows": 4}, "create-topics in rows --partitions 4"),
        (True, {"in": 4, "rows": 8}, "create-topics rows --partitions 8"),
        (True, {}, "restore-offsets MODULE:APP --made-again in --made-again rows"),
    ],
)
def test_commands_for_missing_source_topics_name_them(
    had_tasks: bool, counts: dict[str, int], command: str
) -> None:
    status = GroupStatusCode.MISSING_SOURCE_TOPICS
    missing = [GroupStatus(status, "Source topics in, rows are missing.")]
    message = explain_lasting_status(
        "orders", missing, had_tasks=had_tasks, partition_counts=counts
    )
    assert command in message


def test_an_older_topology_is_a_warning_with_its_code() -> None:
    stale = report(GroupStatusCode.STALE_TOPOLOGY)
    message = explain_passing_statuses("orders", stale)
    assert SAID in message
    assert "the version of the application" in message
    symptom = find_by_message(message)
    assert symptom is not None
    assert symptom.code == "MR-033"
    assert explain_lasting_status("orders", stale) == ""


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
    assert f"create-topics {named} --partitions NUMBER`" in explain_lasting_status(
        "orders", [status]
    )


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
    assert explain_passing_statuses("orders", report(status)) == ""
    assert explain_fatal_status("orders", report(status)) == ""
    is_shutdown = status is GroupStatusCode.SHUTDOWN_APPLICATION
    assert find_shutdown_reason(report(status)) == (SAID if is_shutdown else "")


def test_a_status_of_a_later_release_is_told_in_the_words_of_the_broker() -> None:
    message = explain_passing_statuses("orders", report(LATER_STATUS))
    assert message.endswith(f"a status that this release does not know: {SAID}")
    assert is_group_ready(report(LATER_STATUS))


@pytest.mark.parametrize("status", GroupStatusCode)
def test_a_group_is_ready_unless_its_tasks_can_not_be_assigned(status: GroupStatusCode) -> None:
    ready = {GroupStatusCode.STALE_TOPOLOGY, GroupStatusCode.SHUTDOWN_APPLICATION}
    assert is_group_ready(report(status)) == (status in ready)


def test_missing_topics_of_other_counts_have_a_command_each() -> None:
    status = GroupStatus(
        GroupStatusCode.MISSING_SOURCE_TOPICS, "Source topics a, b, c are missing."
    )
    message = explain_lasting_status("orders", [status], partition_counts={"a": 3, "b": 4, "c": 3})
    assert "create-topics a c --partitions 3`" in message
    assert "create-topics b --partitions 4`" in message
