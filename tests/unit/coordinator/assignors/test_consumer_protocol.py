"""Test that ConsumerProtocol's bytes are written as known, read back, and refused if damaged.

That Kafka's own classes make the same bytes is shown in `tests/conformance/assignors`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignors import cooperative_sticky, sticky
from coordinator.assignors.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    decode_topics,
    encode_assignment,
    encode_subscription,
)
from coordinator.assignors.subscriptions import ConsumerSubscription
from tests.unit.properties import examples

ALL = ConsumerSubscription(("b", "a"), b"u", [("b", 1), ("a", 0)], 7, "rack")
TOPICS = "00000002" + "0001" + "61" + "0001" + "62"
USER_DATA = "00000001" + "75"
OWNED = (
    "00000002" + "0001" + "61" + "00000001" + "00000000" + "0001" + "62" + "00000001" + "00000001"
)
GENERATION = "00000007"
RACK = "0004" + "7261636b"

NAMES = st.text("abc.-_", min_size=1, max_size=4)
PARTITIONS = st.lists(st.tuples(NAMES, st.integers(0, 2**31 - 1)), unique=True)


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        (0, TOPICS + USER_DATA),
        (1, TOPICS + USER_DATA + OWNED),
        (2, TOPICS + USER_DATA + OWNED + GENERATION),
        (3, TOPICS + USER_DATA + OWNED + GENERATION + RACK),
    ],
)
def test_each_version_of_a_subscription_adds_a_field(version: int, fields: str) -> None:
    assert encode_subscription(ALL, version).hex() == f"{version:04x}{fields}"


def test_a_field_that_a_version_lacks_reads_as_not_there() -> None:
    everything = replace(ALL, topics=("a", "b"), owned=[("a", 0), ("b", 1)])
    lacking = [
        replace(everything, owned=[], generation=-1, rack_id=None),
        replace(everything, generation=-1, rack_id=None),
        replace(everything, rack_id=None),
        everything,
    ]
    assert [decode_subscription(encode_subscription(ALL, v)) for v in range(4)] == lacking


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    newer = b"\0\x09" + encode_subscription(ALL)[2:] + b"a field of version 9"
    assert decode_subscription(newer) == decode_subscription(encode_subscription(ALL))


def test_of_its_topics_no_more_is_asked_than_version_0_says() -> None:
    behind = b"what some version has there"
    assert decode_topics(b"\0\x09" + encode_subscription(ALL, 0)[2:] + behind) == ("a", "b")
    cut_short = encode_subscription(ALL, 0)[:-1]
    with pytest.raises(ValueError, match="not of ConsumerProtocol"):
        decode_topics(cut_short)


def test_an_assignment_has_its_topics_in_the_order_of_their_first_partitions() -> None:
    data = encode_assignment([("b", 2), ("a", 0), ("b", 1)], version=1)
    assert data.hex() == (
        "0001" + "00000002" + "000162" + "00000002" + "00000002" + "00000001"
        "000161" + "00000001" + "00000000" + "ffffffff"
    )
    assert decode_assignment(data) == ([("b", 2), ("b", 1), ("a", 0)], None)


@examples(50)
@given(
    topics=st.lists(NAMES, unique=True),
    user_data=st.none() | st.binary(),
    owned=PARTITIONS,
    generation=st.integers(-1, 2**31 - 1),
    rack_id=st.none() | NAMES,
)
def test_a_subscription_comes_back(
    topics: list[str],
    user_data: bytes | None,
    owned: list[tuple[str, int]],
    generation: int,
    rack_id: str | None,
) -> None:
    said = ConsumerSubscription(
        tuple(sorted(topics)), user_data, sorted(owned), generation, rack_id
    )
    assert decode_subscription(encode_subscription(said)) == said


@examples(50)
@given(PARTITIONS, st.none() | st.binary())
def test_an_assignment_comes_back(
    partitions: list[tuple[str, int]], user_data: bytes | None
) -> None:
    found, data = decode_assignment(encode_assignment(sorted(partitions), user_data))
    assert (found, data) == (sorted(partitions), user_data)


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff" + b"\0" * 20, b"\0\3\0\0\0\1\0\5top"])
def test_foreign_bytes_are_refused(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        with pytest.raises(ValueError, match="ConsumerProtocol"):
            decode(data)


@examples(50)
@given(st.binary())
def test_no_bytes_do_more_than_raise_value_error(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        with suppress(ValueError):
            decode(data)
    sticky.decode_user_data(data)
    cooperative_sticky.decode_user_data(data)


@examples(50)
@given(PARTITIONS, st.integers(-1, 2**31 - 1))
def test_what_sticky_members_owned_comes_back(
    partitions: list[tuple[str, int]], generation: int
) -> None:
    data = sticky.encode_user_data(partitions, generation)
    found, since = sticky.decode_user_data(data)
    assert (sorted(found), since) == (sorted(partitions), generation)
    before_kip_341 = data[:-4]
    assert sticky.decode_user_data(before_kip_341) == (found, -1)


def test_user_data_that_cannot_be_read_counts_as_nothing() -> None:
    torn = sticky.encode_user_data([("a", 0)], 3)[:9]
    assert sticky.decode_user_data(torn) == ((), -1)
    assert cooperative_sticky.decode_user_data(cooperative_sticky.encode_user_data(3)) == 3
    assert cooperative_sticky.decode_user_data(b"\0\0\3") == -1
