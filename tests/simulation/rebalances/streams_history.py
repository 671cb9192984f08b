"""Run histories of rebalances whose group has the streams protocol (KIP-1071)."""

from __future__ import annotations

from typing import Any

from tests.simulation.history import Bug, no_bug
from tests.simulation.rebalances.history import RebalanceHistory
from tests.simulation.rebalances.scenario import RebalanceScenario, scenario
from tests.simulation.rebalances.streams_checkers import STREAMS_CHECKERS, check_streams_movement
from tests.simulation.rebalances.world import STREAMS


class StreamsRebalanceHistory(RebalanceHistory):
    """Represents one run of a scenario in which the broker assigns the tasks."""

    def __init__(self, scenario: RebalanceScenario, bug: Bug = no_bug) -> None:
        super().__init__(scenario, bug, STREAMS_CHECKERS, check_streams_movement)


def streams_scenario(seed: int, **given: Any) -> RebalanceScenario:
    """Return the scenario of a seed, in which the broker assigns the tasks."""
    return scenario(seed, protocol=STREAMS, **given)
