"""Test that each poison record has one dead letter though transactions fail.

A change in place by an aggregator that then fails counts once.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams import App, Store, dead_letter, serdes
from streams.errors import OutcomeUnknown
from streams.settings.exception_handlers import ExceptionHandlers
from streams.topology.build import Topology
from tests.unit.streams.runtime.world import World

VALUES = ("a", "poison 1", "b", "c", "poison 2", "d")
GOOD = ["a", "b", "c", "d"]
FAILING_CALLS = [
    "producer.flush",
    "producer.send_offsets_to_transaction",
    "producer.commit_transaction",
    "produce dead",
    "produce out",
]


def collect(key: str, value: str, seen: list[str]) -> list[str]:
    """Append the value to the aggregate in place, and then fail if it is poison."""
    seen.append(value)
    if value.startswith("poison"):
        raise ValueError(value)
    return seen


def collecting(*, caching: bool) -> Topology:
    app = App("a")
    store = Store.persistent("c") if caching else Store.in_memory("c", caching=False)
    grouped = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
    grouped.aggregate(list, collect, value=serdes.json, store=store).to_stream().to("out")
    return app.topology()


def world(tmp_path: Path, *, caching: bool = True, **more: Any) -> World:
    handlers = ExceptionHandlers(processing=dead_letter("dead"))
    return World(collecting(caching=caching), tmp_path, handlers=handlers, **more)


def collected(world: World) -> list[str]:
    """Return the last committed aggregate."""
    *_, (_, value) = world.kafka.committed("out")
    found: list[str] = orjson.loads(value or b"null")
    return found


def dead(world: World) -> Counter[bytes | None]:
    return Counter(value for _, value in world.kafka.committed("dead"))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", FAILING_CALLS)
@pytest.mark.parametrize("caching", [False, True], ids=["uncached", "cached"])
def test_a_transaction_that_fails_leaves_no_second_dead_letter_and_no_change_in_place(
    tmp_path: Path, call: str, after: bool, caching: bool
) -> None:
    made = world(tmp_path, caching=caching)
    made.load(*VALUES)
    made.script.fail(call, OutcomeUnknown("no answer"), after=after)
    made.run_until(made.consumed)
    assert made.script.list_unmade_failures() == []
    assert collected(made) == GOOD
    assert dead(made) == {b"poison 1": 1, b"poison 2": 1}


def test_at_least_once_doubles_the_dead_letters_of_what_it_repeats(tmp_path: Path) -> None:
    """Test that at_least_once doubles dead letters, so that the check for doubles can fail."""
    made = world(tmp_path, guarantee="at_least_once")
    made.load(*VALUES)
    # The first call commits where the input began.
    made.script.fail("member.try_commit_offsets", OutcomeUnknown("no answer"), at=2)
    made.run_until(made.consumed)
    assert dead(made) == {b"poison 1": 2, b"poison 2": 2}


def test_a_batch_of_nothing_but_poison_is_consumed(tmp_path: Path) -> None:
    made = world(tmp_path)
    made.load("poison 1")
    made.run_until(made.consumed)
    assert dead(made) == {b"poison 1": 1}
    assert made.kafka.committed("out") == []
    assert made.loop.counters.dead_letters == made.loop.counters.dropped == 1
    by_task = made.loop.measurements.timings_by_task
    assert [each.dropped_total for each in by_task.values()] == [1], "skipped by a handler"
