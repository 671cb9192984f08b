"""Test that judging histories finds a line that differs, a surplus line, and a missing one."""

from __future__ import annotations

import json

import pytest

from tests.conformance.kept_histories import DIRECTORY, compare_histories

KEPT = sorted(path.name for path in DIRECTORY.glob("*.json"))


def test_the_first_seeds_of_each_kind_are_kept() -> None:
    kinds = ("consumer-groups", "mixed-groups", "transactions")
    assert {f"{kind}-{seed}.json" for kind in kinds for seed in range(3)} <= set(KEPT)


@pytest.mark.parametrize("name", KEPT)
def test_a_history_that_differs_from_the_kept_one_is_seen(name: str) -> None:
    lines = json.loads((DIRECTORY / name).read_text())
    compare_histories(lines, lines, name)
    for wrong in ([*lines[:-1], "another answer"], lines[:-1], [*lines, lines[-1]]):
        with pytest.raises(AssertionError, match=name):
            compare_histories(lines, wrong, name)
