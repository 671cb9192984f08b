"""Test which results of two runs at work agree, where timing decides which of them are sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.differential.live import LiveCase, Mode, Output, differences, generate

MADE: Output = {"6b": [("78", 1, ())]}
MADE_AND_DELETED: Output = {"6b": [("78", 1, ()), (None, 1, ())]}
DELETED_LATER: Output = {"6b": [(None, 2, ())]}
NOTHING: Output = {}


def create_case(mode: Mode, cache_bytes: int) -> LiveCase:
    live = generate(0)
    topology = replace(live.case.topology, cache_bytes=cache_bytes)
    return replace(live, mode=mode, case=replace(live.case, topology=topology))


@pytest.mark.parametrize("mode", [Mode.ORDER, Mode.FINAL])
def test_nothing_is_sent_with_caching_of_what_comes_and_goes_within_a_commit(mode: Mode) -> None:
    for one, other in ((MADE_AND_DELETED, NOTHING), (NOTHING, MADE_AND_DELETED)):
        assert differences(create_case(mode, 1_000), one, other, MADE_AND_DELETED) == []
        assert differences(create_case(mode, 0), one, other, MADE_AND_DELETED) != []


@pytest.mark.parametrize("mode", [Mode.ORDER, Mode.FINAL])
@pytest.mark.parametrize(
    ("theirs", "mine"),
    [(MADE, NOTHING), (MADE, MADE_AND_DELETED), (MADE_AND_DELETED, DELETED_LATER)],
)
def test_any_other_end_has_to_be_the_same(mode: Mode, theirs: Output, mine: Output) -> None:
    assert differences(create_case(mode, 1_000), theirs, mine, MADE_AND_DELETED) != []


@pytest.mark.parametrize("mode", [Mode.ORDER, Mode.FINAL])
def test_headers_count_where_no_timing_changes_which_record_is_the_last(mode: Mode) -> None:
    theirs: Output = {"6b": [("78", 1, (("n", "31"),))]}
    found = differences(create_case(mode, 0), theirs, MADE, MADE)
    assert bool(found) is (mode is Mode.ORDER)
