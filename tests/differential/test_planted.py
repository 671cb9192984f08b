"""A bug in an operator is seen, by the cases that have that operator, within a few of them."""

from __future__ import annotations

import pytest

from tests.brokers import IN_CI
from tests.differential.bugs import BUGS
from tests.differential.generator import generate
from tests.differential.peer import Peer
from tests.differential.trial import judge

TRIED_MAX = 60


@IN_CI
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name: str, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch)
    assert any(
        judge(generate(seed, [bug.operator], bug.operator), peer).differences
        for seed in range(TRIED_MAX)
    ), f"{TRIED_MAX} cases with {bug.operator} agree although {name}"
