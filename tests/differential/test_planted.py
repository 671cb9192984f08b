"""Test that a bug in an operator is seen by its small kept case and by a few random ones."""

from __future__ import annotations

import pytest

from tests.brokers import IN_CI
from tests.differential.__main__ import CORPUS
from tests.differential.bugs import BUGS, slug
from tests.differential.description import Case
from tests.differential.generator import generate
from tests.differential.peer import Peer
from tests.differential.trial import judge

TRIED_MAX = 60


@pytest.mark.parametrize("name", BUGS)
def test_the_case_that_is_kept_for_a_bug_sees_it(
    name: str, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case.from_text((CORPUS / f"{slug(name)}.json").read_text())
    BUGS[name].plant(monkeypatch)
    assert judge(case, peer).differences


@IN_CI
@pytest.mark.parametrize("name", BUGS)
def test_random_cases_see_a_bug(name: str, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch)
    assert any(
        judge(generate(seed, [bug.operator], bug.operator), peer).differences
        for seed in range(TRIED_MAX)
    ), f"{TRIED_MAX} cases with {bug.operator} agree although {name}"
