"""Test that the ledger's records survive encoding and decide what is in a cut."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import groupby

import pytest

from streams.common.topic_partitions import Partition
from streams.ledger import (
    LedgerTransaction,
    LookupState,
    WrittenRange,
    decode,
    decode_global_lookup_states,
    decode_order,
    encode_global_lookup_states,
    encode_order,
    encode_transaction,
)

IN, OTHER, OUT = Partition("in", 0), Partition("in", 1), Partition("out", 11)
ENTRY = LedgerTransaction(
    7, 3, {"0_0": {IN: 12}, "1_1": {OTHER: 5}}, {OUT: (WrittenRange(2, 4), WrittenRange(9, 9))}
)


def test_an_entry_comes_back_as_it_was_given() -> None:
    assert decode(encode_transaction(ENTRY)) == ENTRY
    numbered = replace(ENTRY, commits={"0_0": 1_700_000_000_000, "1_1": 3})
    assert decode(encode_transaction(numbered)) == numbered
    bound = replace(ENTRY, topic_ids={"in": 2**62})
    assert decode(encode_transaction(bound)) == bound
    ordered = replace(ENTRY, order={"0_0": encode_order([(0, 1), (1, 300)])})
    assert decode(encode_transaction(ordered)) == ordered
    looked_up = replace(ENTRY, lookups={"0_0": {"priced": encode_global_lookup_states(7, [])}})
    assert decode(encode_transaction(looked_up)) == looked_up
    nothing = LedgerTransaction(0, 0, {"0_0": {IN: 0}}, {})
    assert decode(encode_transaction(nothing)) == nothing


def test_the_format_is_the_documented_one() -> None:
    assert encode_transaction(ENTRY) == (
        b'{"v":1,"producer":[7,3],'
        b'"inputs":{"0_0":{"in":{"0":12}},"1_1":{"in":{"1":5}}},'
        b'"written":{"out":{"11":[[2,4],[9,9]]}}}'
    )


def test_the_numbers_of_commits_follow_the_ranges() -> None:
    numbered = encode_transaction(replace(ENTRY, commits={"0_0": 4}))
    assert numbered == encode_transaction(ENTRY)[:-1] + b',"commits":{"0_0":4}}'


@pytest.mark.parametrize("value", [b"", b"{", b"null", b"[]", b'{"v":2}', b"\xff"])
def test_what_is_no_entry_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(value)


@pytest.mark.parametrize(
    ("offset", "wrote"),
    [(1, False), (2, True), (4, True), (5, False), (8, False), (9, True), (10, False)],
)
def test_an_entry_wrote_what_is_in_its_runs(offset: int, wrote: bool) -> None:
    assert ENTRY.wrote(OUT, offset) == wrote
    assert not ENTRY.wrote(Partition("out", 1), offset)


@pytest.mark.parametrize(
    ("cut", "inside"),
    [
        ({IN: 12, OTHER: 5}, True),
        ({IN: 99, OTHER: 5}, True),
        ({IN: 11, OTHER: 5}, False),
        ({IN: 12, OTHER: 4}, False),
        ({IN: 12}, False),
    ],
)
def test_an_entry_is_in_a_cut_that_is_beyond_what_it_read(
    cut: dict[Partition, int], inside: bool
) -> None:
    assert ENTRY.is_in(cut) == inside


@pytest.mark.parametrize("runs", [[], [(0, 1)], [(0, 127), (1, 128), (5, 2**40)], [(1, 1)] * 9_999])
def test_an_order_of_records_comes_back_as_it_was_given(runs: list[tuple[int, int]]) -> None:
    assert decode_order(encode_order(runs)) == runs


def test_an_order_that_changes_at_random_takes_a_third_of_a_byte_a_record() -> None:
    draws = random.Random(1)
    taken = [draws.randrange(2) for _ in range(10_000)]
    runs = [(place, len([*same])) for place, same in groupby(taken)]
    assert 3_000 < len(encode_order(runs)) < 3_600


@pytest.mark.parametrize("text", ["", "=", "AAAA", encode_order([(0, 1)])[:-4]])
def test_what_is_no_order_of_records_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an order of records"):
        decode_order(text)


def test_states_of_a_global_table_come_back_as_they_were_given() -> None:
    states = [LookupState(0, (0, 2**40, 5)), LookupState(300, ())]
    assert decode_global_lookup_states(encode_global_lookup_states(2**62 + 1, states)) == (
        2**62 + 1,
        states,
    )
    assert decode_global_lookup_states(encode_global_lookup_states(None, states)) == (None, states)
    assert decode_global_lookup_states(encode_global_lookup_states(None, [])) == (None, [])


@pytest.mark.parametrize("text", ["", "no states", encode_order([(7, 0), (3, 5)])])
def test_what_is_no_states_of_a_global_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no states of a global table"):
        decode_global_lookup_states(text)
