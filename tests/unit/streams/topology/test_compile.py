"""Test how many Python functions a record passes in a compiled topology."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from streams import App, serdes
from tests.unit.streams.bound import BoundTask

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def calls_of(task: BoundTask) -> list[str]:
    """Return the functions of `streams.operators` and of this file that one record passes."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        mine = "/streams/operators/" in code.co_filename or code.co_filename == __file__
        if event == "call" and mine:
            seen.append(code.co_name)

    task.pipe("k", "v")  # The first record does what is done once only.
    sys.setprofile(note)
    try:
        task.pipe("k", "v")
    finally:
        sys.setprofile(None)
    return seen


def test_a_chain_of_stateless_steps_costs_one_call_a_step_and_those_of_the_user() -> None:
    app = App("a")
    stream = app.stream("in", **TEXT)
    parts = (
        stream.filter(lambda k, v: True)
        .map_values(lambda v: v)
        .peek(lambda k, v: None)
        .map(lambda k, v: (k, v))
        .select_key(lambda k, v: k)
        .flat_map_values(lambda v: (v,))
        .filter_not(lambda k, v: False)
        .merge(stream.filter(lambda k, v: False))
        .split({"all": lambda k, v: True})
    )
    parts["all"].for_each(lambda k, v: None)
    calls = calls_of(BoundTask(app))
    # Merging costs nothing, and neither does a branch once it is chosen.
    assert calls.count("<lambda>") == 10
    assert len(calls) - calls.count("<lambda>") == 1 + 10, "the source, and each step once"


def test_reading_and_writing_cost_one_call_each() -> None:
    app = App("a")
    app.stream("in", **TEXT).to("out")
    assert calls_of(BoundTask(app)) == ["receive_message", "send_record"]
