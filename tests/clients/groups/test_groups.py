"""Test groups of Java, librdkafka and Go clients of the classic and the consumer protocol.

Their members join, leave, crash, fall silent and come back while records flow.

All groups run side by side against one broker; the embedded one is killed twice meanwhile. Then
each law is looked at for each group by itself. `-k 'range and not migration'` runs those only.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.clients.groups import laws
from tests.clients.groups.history import History
from tests.clients.groups.roster import TEAMS

SHOWN = 20

pytestmark = pytest.mark.sampled(3, by="name")

every_team = pytest.mark.parametrize("name", TEAMS)


def judge(history: History, name: str, broken: Sequence[str]) -> None:
    """Check that no law is broken; else say how to look at it again, and the first violation."""
    course = history.courses[name]
    where = f"--seed {history.seed}; {course.plan}; logs in {course.directory}"
    assert not broken, "\n".join([where, *broken[:SHOWN]])


@every_team
def test_the_group_settles_after_every_step_and_commits_to_the_end(
    history: History, name: str
) -> None:
    judge(history, name, [history.errors[name]] if name in history.errors else [])


@every_team
def test_no_record_is_lost(history: History, name: str) -> None:
    judge(history, name, laws.lost_records(history.courses[name].lives, history.records))


@every_team
def test_no_partition_is_owned_by_two_members_at_once(history: History, name: str) -> None:
    judge(history, name, laws.two_owners(history.courses[name].lives))


@every_team
def test_an_owner_begins_where_the_ones_before_it_have_committed(
    history: History, name: str
) -> None:
    judge(history, name, laws.bad_starts(history.courses[name].lives))


@every_team
def test_nobody_is_fenced_without_a_cause(history: History, name: str) -> None:
    lives = history.courses[name].lives
    fenced = laws.fenced_for_nothing(lives, history.broker_ends_ns, history.broker_delays)
    judge(history, name, fenced)


@pytest.mark.parametrize(
    "name", [name for name, team in TEAMS.items() if team.static_session_timeout_ms]
)
def test_a_static_member_comes_back_unnoticed(history: History, name: str) -> None:
    course = history.courses[name]
    session_ms = course.team.static_session_timeout_ms
    disturbed = laws.disturbed(
        course.lives, course.returns, history.broker_ends_ns, session_ms, history.broker_delays
    )
    judge(history, name, disturbed)


@pytest.mark.parametrize("name", [name for name, team in TEAMS.items() if team.copies])
def test_each_record_is_copied_once_and_in_order(history: History, name: str) -> None:
    judge(history, name, laws.not_exact(history.outputs[name], history.records))
