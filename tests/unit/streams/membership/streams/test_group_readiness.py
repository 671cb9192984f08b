"""Test when a member warns of its group's topics, and when it gives up."""

from __future__ import annotations

import pytest

from streams.errors import StreamsError
from streams.membership.streams.group_readiness import GroupReadiness
from streams.membership.streams.statuses import GroupStatus, GroupStatusCode

INTERNAL = GroupStatus(GroupStatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: a")
SOURCES = GroupStatus(GroupStatusCode.MISSING_SOURCE_TOPICS, "Source topics in are missing.")


class Followed:
    """Follows the statuses of answers at times in s."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.readiness = GroupReadiness(
            "orders",
            lambda: self.now_s,
            lambda since_s, after_s: self.now_s - since_s >= after_s,
            60_000,
        )

    def take(self, *statuses: GroupStatus, after_s: float = 0.0, has_tasks: bool = False) -> str:
        self.now_s += after_s
        self.readiness.update_statuses_and_log(statuses, has_tasks=has_tasks)
        return self.readiness.reason


def test_internal_topics_that_the_broker_creates_in_time_are_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    followed = Followed()
    for after_s in (0.0, 0.1, 0.1, 4.0):
        assert followed.take(INTERNAL, after_s=after_s) == ""
    assert followed.take(has_tasks=True) == ""
    assert not caplog.records


def test_internal_topics_that_stay_missing_are_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    followed = Followed()
    followed.take(INTERNAL)
    for _ in range(3):
        assert "Internal topics are missing: a. The broker" in followed.take(INTERNAL, after_s=5.0)
    assert caplog.text.count("has no tasks yet") == 1


def test_source_topics_are_warned_of_when_two_answers_in_a_row_say_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    followed = Followed()
    assert followed.take(SOURCES) == ""
    assert "Source topics in are missing." in followed.take(SOURCES)
    assert followed.take() == ""
    assert caplog.text.count("has no tasks yet") == 1


def test_a_group_that_had_tasks_has_none_any_more_and_the_number_of_partitions_is_known() -> None:
    followed = Followed()
    followed.take(has_tasks=True)
    followed.readiness.note_partition_counts({"in": 6})
    followed.take(SOURCES)
    reason = followed.take(SOURCES)
    assert "has no tasks any more" in reason
    assert "create-topics in --partitions 6" in reason


def test_topics_that_stay_missing_end_the_thread() -> None:
    followed = Followed()
    followed.take(SOURCES)
    followed.take(SOURCES, after_s=59.0)
    followed.readiness.require_topics()
    followed.take(SOURCES, after_s=1.0)
    with pytest.raises(StreamsError, match="Source topics in are missing"):
        followed.readiness.require_topics()


def test_internal_topics_have_their_own_time_once_the_sources_are_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    followed = Followed()
    for after_s in (0.0, 1.0, 58.0):
        followed.take(SOURCES, after_s=after_s)
    caplog.clear()
    for after_s in (0.5, 1.0, 3.0):
        assert followed.take(INTERNAL, after_s=after_s) == ""
        followed.readiness.require_topics()
    assert not caplog.records
    followed.take(INTERNAL, after_s=57.0)
    with pytest.raises(StreamsError, match="Internal topics are missing"):
        followed.readiness.require_topics()
