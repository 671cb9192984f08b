"""Test that members of streams groups rebalance as they should, whatever fails meanwhile."""

from __future__ import annotations

import pytest

from tests.simulation.conftest import FindBug
from tests.simulation.history import find_failure
from tests.simulation.rebalances.streams_bugs import STREAMS_BUGS, PlantedStreamsBug
from tests.simulation.rebalances.streams_history import StreamsRebalanceHistory, streams_scenario

SEEDS = 6  # `make soak SEEDS=1000` runs as many as you like
BUG_SEEDS = 100
"""Two of a hundred seeds show `offers_not_repeated`; the kept ones are tried first."""
BUG_MEMBERS = 4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_of_streams_groups_holds_in_the_history_of_a_seed(seed: int) -> None:
    found = find_failure(StreamsRebalanceHistory, streams_scenario(seed))
    assert not found, found


def is_seen(planted: PlantedStreamsBug, seed: int) -> bool:
    """Tell whether the checker of a bug sees it in the history of a seed."""
    scenario = streams_scenario(seed, members=BUG_MEMBERS, **planted.setting)
    violation = StreamsRebalanceHistory(scenario, planted.bug).run()
    return violation is not None and violation.checker == planted.checker


@pytest.mark.parametrize(
    "planted", STREAMS_BUGS, ids=[planted.bug.__name__ for planted in STREAMS_BUGS]
)
def test_a_checker_finds_a_bug_of_streams_groups(
    planted: PlantedStreamsBug, find_bug: FindBug
) -> None:
    found = find_bug(BUG_SEEDS, lambda seed: is_seen(planted, seed))
    assert found is not None, f"{planted.checker} sees nothing in {BUG_SEEDS} histories"
