"""Test each place x poison x handler x guarantee: that record is treated, all others come out once.

The message of an error names record, step and remedy. Some transactions fail on the way, by a
draw from the name of the cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from streams.settings.exception_handlers import ExceptionHandlers
from tests.sampling import draw_sample
from tests.unit.streams.runtime.poison.cells import (
    GUARANTEES,
    KINDS,
    LEFT_OUT,
    STAGES,
    Cell,
    list_cells,
)
from tests.unit.streams.runtime.poison.expectations import (
    Handling,
    check_asked,
    check_failed,
    check_letters,
    check_passed,
)
from tests.unit.streams.runtime.poison.places import Place
from tests.unit.streams.runtime.poison.running import Written, prepare
from tests.unit.streams.runtime.poison.storing import list_large_places

CALLS = ("producer.flush", "producer.commit_transaction", "produce out", "produce after")
CELLS = list_cells()
SAMPLE_SIZE = 200


def draw_trouble(cell: Cell) -> Mapping[str, int]:
    """Return the call that fails in a run, drawn from its cell's name; in half of them none."""
    random = Random(str(cell))
    if random.random() < 0.5:
        return {}
    calls = [c for c in CALLS if cell.guarantee != "at_least_once" or "transaction" not in c]
    return {random.choice(calls): random.choice((1, -1, 2, -2))}


def check_cell(cell: Cell, state: Path) -> None:
    """Run a cell, and check what has become of its record and of the others."""
    place = cell.place
    oracle = find_oracle(place, state)
    run = prepare(place.build, state / "run", cell.guarantee, place.write)
    handling = Handling(place, cell.handler)
    got = run.start(handling.handlers, draw_trouble(cell))
    writes_letter = cell.handler in ("dead_letter", "function") and place.handler != "dropped"
    if place.handler == "dropped":
        check_passed(place, run, handling, got, oracle)
        assert not handling.asked
    elif cell.handler == "fail":
        check_failed(place, run, got, oracle)
    elif place.is_letter_fatal and writes_letter:
        assert f"the dead letter of in[0]@{run.offset} can't be written" in str(got.error)
    else:
        check_passed(place, run, handling, got, oracle)
        if writes_letter:
            check_letters(place, run, got)
        if cell.handler == "function":
            check_asked(place, run, handling.asked)
    if cell.handler == "fail" and place.handler != "dropped":
        # With another handler the application goes on where it ended, and nothing is missing.
        other = Handling(place, "skip")
        check_passed(place, run, other, run.start(other.handlers), oracle)


ORACLES: dict[str, Written] = {}


def find_oracle(place: Place, state: Path) -> Written:
    """Return what an application writes without the poison record, which is run once."""
    name = f"{place.stage} {place.kind} {place.name}"
    if name not in ORACLES:
        run = prepare(place.build, state / "oracle", "exactly_once_v2")
        outcome = run.start(ExceptionHandlers())
        assert outcome.error is None, outcome.error
        ORACLES[name] = outcome.written
    return ORACLES[name]


@pytest.mark.parametrize("cell", draw_sample("poison", CELLS, SAMPLE_SIZE), ids=str)
def test_one_record_is_treated_and_all_others_come_out_once(cell: Cell, tmp_path: Path) -> None:
    check_cell(cell, tmp_path)


def test_each_stage_meets_each_kind_of_poison_or_there_is_a_reason() -> None:
    met = {(cell.place.stage, cell.place.kind) for cell in CELLS}
    assert not met & LEFT_OUT.keys()
    assert met | LEFT_OUT.keys() == {(stage, kind) for stage in STAGES for kind in KINDS}


def test_each_cell_has_a_name_of_its_own() -> None:
    assert len({str(cell) for cell in CELLS}) == len(CELLS)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("place", [*list_large_places()][:2], ids=lambda each: each.name)
def test_a_value_that_its_changelog_refuses_is_found_before_its_store_has_it(
    place: Place, guarantee: str, tmp_path: Path
) -> None:
    run = prepare(place.build, tmp_path, guarantee, place.write)
    got = run.start(ExceptionHandlers())
    expected = (
        rf"step 'bad' can't process in\[0\]@{run.offset}: store 's' can't keep .*: it has "
        r"2000000 bytes, and its changelog takes 1000000 with the key \(message.max.bytes of the "
        r"producer\): keep less in one value, or raise that setting; processing_handler= decides"
    )
    assert re.search(expected, str(got.error)), got.error
    assert got.world.loop.counters.values_refused == 1
