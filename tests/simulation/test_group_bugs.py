"""Test that bugs planted in the group coordinator are found by the checkers of their invariants."""

from __future__ import annotations

import pytest

from tests.simulation.checkers import Checker
from tests.simulation.conftest import FindBug
from tests.simulation.groups import admin_bugs, bugs, consumer_bugs, days_bugs
from tests.simulation.groups.history import GroupHistory
from tests.simulation.groups.scenario import scenario
from tests.simulation.history import Bug

SEEDS = 150  # of which a third are of the protocols in question
HOSTS_MAX = 8  # the larger histories take longer, and show no more

PLANTED = [
    (bug, checker, planted.PROTOCOLS)
    for planted in (bugs, consumer_bugs, admin_bugs)
    for bug, checkers in planted.BUGS.items()
    for checker in checkers
]


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    ("bug", "checker", "protocols"),
    PLANTED,
    ids=[f"{bug.__name__}-{checker.name}" for bug, checker, _ in PLANTED],
)
def test_a_checker_of_groups_finds_a_bug(
    bug: Bug, checker: type[Checker], protocols: frozenset[str], find_bug: FindBug
) -> None:
    def shows(seed: int) -> bool:
        planted = scenario(seed)
        setting = planted.setting
        if setting.protocol not in protocols or setting.hosts > HOSTS_MAX:
            return False
        violation = GroupHistory(planted, bug, [checker]).run()
        return violation is not None and violation.checker == checker.name

    assert find_bug(SEEDS, shows) is not None, f"{checker.name} sees nothing in {SEEDS} histories"


@pytest.mark.parametrize(
    ("bug", "checker"), days_bugs.BUGS.items(), ids=[bug.__name__ for bug in days_bugs.BUGS]
)
def test_a_bug_of_groups_that_days_show_is_found(
    bug: Bug, checker: type[Checker], find_bug: FindBug
) -> None:
    def shows(seed: int) -> bool:
        planted = scenario(seed, days=True)
        if planted.setting.hosts > HOSTS_MAX:
            return False
        violation = GroupHistory(planted, bug, [checker]).run()
        assert violation is None or violation.checker == checker.name, violation
        return violation is not None

    assert find_bug(SEEDS, shows) is not None, f"{checker.name} sees nothing in {SEEDS} histories"
