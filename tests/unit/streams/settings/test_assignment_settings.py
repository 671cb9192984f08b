"""Test the settings by which tasks are assigned, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams import ConfigError
from streams.settings.config import load_config


def test_an_assignor_is_a_function() -> None:
    def assign(state: object) -> list[Any]:
        return []

    assert load_config(task_assignor=assign).task_assignor is assign
    assert load_config().task_assignor is None


@pytest.mark.parametrize("given", ["sticky", 1, dict])
def test_what_is_no_function_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="is no function of an ApplicationState"):
        load_config(task_assignor=given)


def test_a_class_of_java_is_refused_with_the_way_to_give_one_here(tmp_path: Path) -> None:
    file = tmp_path / "app.properties"
    file.write_text("task.assignor.class=com.example.Sticky")
    with pytest.raises(ConfigError, match=r"give the function: App\(\.\.\., task_assignor"):
        load_config(file)


@pytest.mark.parametrize(
    ("given", "rack"),
    [
        ({}, ""),
        ({"client_rack": "a"}, "a"),
        ({"client_rack": "a", "consumer": {"client.rack": "b"}}, "b"),
        ({"consumer": {"client.rack": "b"}, "main_consumer": {"client.rack": "c"}}, "c"),
        ({"restore_consumer": {"client.rack": "d"}}, ""),
    ],
)
def test_the_rack_is_that_of_the_consumers_of_inputs(given: dict[str, Any], rack: str) -> None:
    assert load_config(**given).rack == rack


def test_racks_are_set_as_in_kafka_streams(tmp_path: Path) -> None:
    file = tmp_path / "app.properties"
    file.write_text(
        "client.rack=a\nrack.aware.assignment.strategy=balance_subtopology\n"
        "rack.aware.assignment.traffic_cost=0\nrack.aware.assignment.non_overlap_cost=7\n"
    )
    config = load_config(file)
    assert config.rack == "a"
    assert config.rack_aware_assignment_strategy == "balance_subtopology"
    assert config.rack_aware_assignment_traffic_cost == 0
    assert config.rack_aware_assignment_non_overlap_cost == 7


@pytest.mark.parametrize(
    "given",
    [
        {"rack_aware_assignment_strategy": "nearest"},
        {"rack_aware_assignment_traffic_cost": -1},
        {"rack_aware_assignment_non_overlap_cost": -1},
    ],
)
def test_other_values_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))):
        load_config(**given)
