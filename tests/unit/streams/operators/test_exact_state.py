"""Test that an object in a store is what a restart would read, before a commit as after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any

import pytest

from streams import App, StreamsError, TopologyTestDriver, serdes
from streams.membership.protocol import AssignmentInfo
from streams.serdes import Serde
from tests.unit.streams.runtime.world import World

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def keep(initial: Any, serde: Serde[Any]) -> App:
    """Return an application that keeps `initial` for each key, and writes it when it is read."""
    app = App("a")
    lines = app.stream("lines", key=serdes.string, value=serdes.string)
    kept = lines.group_by_key().aggregate(
        lambda: initial, lambda _, line, value: value, value=serde, store="kept"
    )
    kept.to_stream().map_values(lambda value: repr(value), value=serdes.string).to("out")
    return app


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ({"least": inf}, r"kept.*value\.least: JSON has no inf"),
        ({"at": NOON}, r"kept.*value\.at: JSON gives back no datetime"),
        ({"pair": (1, 2)}, r"kept.*value\.pair: JSON gives back no tuple"),
    ],
)
def test_a_state_that_json_does_not_give_back_is_refused(initial: Any, message: str) -> None:
    with TopologyTestDriver(keep(initial, serdes.json)) as driver:  # noqa: SIM117
        with pytest.raises(StreamsError, match=message):
            driver.topic("lines").pipe("k", "a")


@pytest.mark.parametrize("between", [lambda driver: None, lambda driver: driver.restart()])
def test_a_declared_state_is_the_same_before_and_after_a_restart(
    between: Callable[[TopologyTestDriver], object],
) -> None:
    serde = serdes.json(dict[str, tuple[datetime, int]])
    with TopologyTestDriver(keep({"last": (NOON, 2**70)}, serde)) as driver:
        driver.topic("lines").pipe("k", "a")
        first = driver.topic("out").read().value
        between(driver)
        driver.topic("lines").pipe("k", "b")
        assert driver.topic("out").read().value == first == repr({"last": (NOON, 2**70)})


ROUNDING = serdes.of(lambda value: b"%d" % value, int, name="whole")


def test_the_driver_refuses_a_state_that_any_serde_reads_back_otherwise() -> None:
    with TopologyTestDriver(keep(1.5, ROUNDING)) as driver:  # noqa: SIM117
        with pytest.raises(StreamsError, match=r"value is float 1\.5, and is read back as int 1"):
            driver.topic("lines").pipe("k", "a")


@dataclass
class Derived:
    size: int
    seen: int = field(init=False, default=0)


def test_the_driver_names_the_field_that_is_not_read_back() -> None:
    value = Derived(1)
    value.seen = 7
    with TopologyTestDriver(keep(value, serdes.json(Derived))) as driver:  # noqa: SIM117
        with pytest.raises(StreamsError, match=r"value\.seen: it is 7, and is read back as 0"):
            driver.topic("lines").pipe("k", "a")


def test_a_join_of_streams_warns_of_no_text_that_its_stores_serialise_when_it_is_put(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("a")
    left, right = (app.stream(each, key=serdes.string, value=serdes.string) for each in ("in", "r"))
    joined = left.join(right, lambda one, _: one, within=timedelta(1), value=serdes.string)
    joined.to("out")
    topology = app.topology()
    names = {
        "r": 1,
        **{topology.restore_topic_of(s.name): 1 for s in topology.subtopologies[0].stores},
    }
    world = World(topology, tmp_path, topics=names, max_task_idle_ms=-1)
    world.member.assign(AssignmentInfo(("0_0",), (("in", 0), ("r", 0))))
    world.load("a", "b")
    world.run_until(world.consumed)
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == []
