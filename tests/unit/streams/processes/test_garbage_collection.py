"""Test that a process of an application collects garbage less often."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from streams.processes.garbage_collection import raise_collection_threshold


@pytest.fixture(autouse=True)
def restored_thresholds() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


@pytest.mark.parametrize(
    ("given", "first"),
    [((700, 10, 10), 20_000), ((2_000, 7, 3), 20_000), ((50_000, 10, 10), 50_000), ((0, 1, 1), 0)],
)
def test_a_low_threshold_is_raised_and_what_the_user_has_chosen_stays(
    given: tuple[int, int, int], first: int
) -> None:
    gc.set_threshold(*given)
    raise_collection_threshold()
    assert gc.get_threshold() == (first, *given[1:])
