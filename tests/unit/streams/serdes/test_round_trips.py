"""Test that each serde gives back what it was given, types included, or refuses it by name.

JSON, Avro, JSON Schema and Protobuf have pages of their own.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.keys import TIME_MAX
from streams import App, TopologyTestDriver, Windowed, serdes
from streams.common.changes import Change
from streams.serdes import Serde
from streams.serdes.foreign_key_messages import (
    SubscriptionInstruction,
    SubscriptionResponseWrapper,
    SubscriptionWrapper,
    create_response_serde,
    create_subscription_serde,
)
from streams.serdes.join_sides import (
    LeftOrRightValue,
    TimestampedKeyAndJoinSide,
    create_left_or_right_values_serde,
    create_timestamped_key_serde,
)
from tests import edge_values as edges
from tests.unit.properties import examples

MB_10 = 10 << 20
SIZE_MS = 1_000
TIMES = st.integers(0, TIME_MAX) | st.sampled_from(
    [0, TIME_MAX - SIZE_MS, TIME_MAX, *edges.TIMES_MS[3:]]
)
HASHES = st.none() | st.binary(min_size=16, max_size=16)

PLAIN: dict[Serde[Any], st.SearchStrategy[Any]] = {
    serdes.string: edges.texts,
    serdes.bytes: edges.binaries,
    serdes.int32: edges.int32s,
    serdes.int64: edges.int64s,
    serdes.float64: edges.any_floats,
    serdes.pickle: edges.PLAIN | edges.FOREIGN.filter(lambda each: type(each) is not object),
}
"""What each plain serde takes."""


def in_window(key: Any, start_ms: int) -> Windowed[Any]:
    return Windowed(key, start_ms, min(start_ms + SIZE_MS, TIME_MAX))


def enclose(inner: Serde[Any], values: st.SearchStrategy[Any]) -> list[tuple[Serde[Any], Any]]:
    """Return the serdes that are made of another one, with what each takes."""
    sides = st.builds(LeftOrRightValue, st.booleans(), values)
    sessions = st.tuples(values, st.tuples(TIMES, TIMES).map(sorted))
    changes = st.tuples(st.none() | values, st.none() | values)
    return [
        (serdes.windowed(inner, SIZE_MS), st.builds(in_window, values, TIMES)),
        (serdes.session_windowed(inner), sessions.map(lambda one: Windowed(one[0], *one[1]))),
        (
            serdes.changed(inner),
            changes.filter(lambda pair: pair != (None, None)).map(lambda pair: Change(*pair)),
        ),
        (
            create_timestamped_key_serde(inner),
            st.builds(TimestampedKeyAndJoinSide, edges.int64s, st.booleans(), values),
        ),
        (create_left_or_right_values_serde(inner, inner), st.lists(sides, max_size=5)),
        (
            create_subscription_serde(inner),
            st.builds(
                SubscriptionWrapper,
                HASHES,
                st.sampled_from(SubscriptionInstruction),
                values,
                st.none() | edges.int32s,
            ),
        ),
        (
            create_response_serde(inner),
            st.builds(
                SubscriptionResponseWrapper,
                HASHES,
                st.none() | values.filter(inner.serialize),
                st.none(),
            ),
        ),
    ]


ENCLOSING = [
    each
    for inner, values in PLAIN.items()
    if inner is not serdes.pickle
    for each in enclose(inner, values)
]
ALL = [*PLAIN.items(), *ENCLOSING]
EXACT = [each for each in ALL if not each[0].name.startswith(("pickle", "changed"))]
"""Serdes whose values have one form as bytes. A Change has several, and a pickle is a program."""
named = pytest.mark.parametrize(("serde", "values"), ALL, ids=[serde.name for serde, _ in ALL])


@named
@given(data=st.data())
@examples(50)
def test_a_value_is_given_back_as_it_was(
    serde: Serde[Any], values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)
    written = serde.serialize(value)
    assert type(written) is bytes
    assert edges.are_same(serde.deserialize(written), value)


@pytest.mark.parametrize(("serde", "values"), EXACT, ids=[serde.name for serde, _ in EXACT])
@given(data=st.data())
@examples(50)
def test_what_is_no_value_s_bytes_is_refused_and_nothing_is_passed_over(
    serde: Serde[Any], values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    """Cut bytes off, add some, or change one: what is still read must have these very bytes."""
    written = bytearray(serde.serialize(data.draw(values)))
    at = data.draw(st.integers(0, len(written)))
    match data.draw(st.sampled_from(["cut", "add", "change"])):
        case "cut":
            del written[at:]
        case "add":
            written[at:at] = data.draw(st.binary(min_size=1, max_size=9))
        case _ if at < len(written):
            written[at] ^= data.draw(st.integers(1, 255))
    try:
        found = serde.deserialize(bytes(written))
    except (ValueError, TypeError):
        return
    if found is not None:  # no bytes at all are a key in a window, as in Kafka Streams
        assert serde.serialize(found) == bytes(written)


ANYTHING = edges.PLAIN | edges.FOREIGN | edges.binaries | edges.any_floats


@pytest.mark.parametrize("serde", PLAIN, ids=lambda serde: serde.name)
@given(value=ANYTHING)
@examples(200)
def test_any_object_is_given_back_equal_or_refused_by_name(serde: Serde[Any], value: Any) -> None:
    try:
        written = serde.serialize(value)
    except (TypeError, ValueError):
        return
    found = serde.deserialize(written)
    if isinstance(value, int | float) and serde is not serdes.pickle:
        assert type(value) is not bool
        assert found == value or (found != found and value != value)
    elif serde is serdes.string:
        assert found == value
    elif type(value) is not object:
        assert edges.are_same(found, value)


@pytest.mark.parametrize(
    "serde", [serdes.int32, serdes.int64, serdes.float64], ids=lambda each: each.name
)
@pytest.mark.parametrize("value", [True, None, "1", b"1", 1j, Decimal("0.5"), 2**2000])
def test_what_is_no_number_of_the_serde_is_refused(serde: Serde[Any], value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{serde.name} takes .*, got {type(value).__name__}"):
        serde.serialize(value)


@pytest.mark.parametrize("step", [-1, 1])
@pytest.mark.parametrize("bits", [53, 63, 64, 1000])
def test_a_float64_takes_the_whole_numbers_that_it_gives_back(bits: int, step: int) -> None:
    assert serdes.float64.deserialize(serdes.float64.serialize(step * 2**bits)) == step * 2**bits
    with pytest.raises(ValueError, match="float, or int that equals one, got int"):
        serdes.float64.serialize(step * (2**bits * 2 + 1))


def test_values_of_10_mb_are_given_back() -> None:
    text, data = "ü" * (MB_10 // 2), b"\xff" * MB_10
    cases: list[tuple[Serde[Any], Any]] = [
        (serdes.string, text),
        (serdes.bytes, data),
        (serdes.pickle, [text, data]),
        (serdes.changed(serdes.bytes), Change(data, data[1:])),
        (
            create_left_or_right_values_serde(serdes.bytes, serdes.string),
            [LeftOrRightValue(True, data)],
        ),
        (serdes.windowed(serdes.string, SIZE_MS), in_window(text, 0)),
    ]
    for serde, value in cases:
        assert serde.deserialize(serde.serialize(value)) == value


@pytest.mark.parametrize("surrogates", edges.SURROGATES)
def test_lone_surrogates_are_no_string(surrogates: str) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        serdes.string.serialize(surrogates)


@pytest.mark.parametrize(("join", "joined_values"), [("join", []), ("left_join", ["p None"])])
def test_a_foreign_row_without_bytes_is_joined_as_if_it_were_not_there_as_in_kafka_streams(
    join: str, joined_values: list[str]
) -> None:
    app = App("a")
    orders = app.table("orders", key=serdes.string, value=serdes.string)
    people = app.table("people", key=serdes.string, value=serdes.string)
    joined = getattr(orders, join)(
        people,
        lambda order, person: f"{order} {person}",
        foreign_key=lambda key, value: value,
        value=serdes.string,
        store="joined",
        name="enrich",
    )
    joined.to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("people").pipe("p", "")
        driver.topic("orders").pipe("o", "p")
        assert driver.topic("out").read_values() == joined_values
