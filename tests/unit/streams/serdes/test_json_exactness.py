"""Test that JSON serdes give back what they were given, types included, or refuse it by name."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams import serdes
from streams.serdes import Serde
from tests import edge_values as edges
from tests.unit.properties import examples

WEI = 123456789012345678901
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def check_is_given_back(serde: Serde[Any], value: Any, place: str) -> None:
    """Fail unless the serde gives back the value, or refuses it for what is at `place`."""
    refusal = None
    try:
        data = serde.serialize(value)
    except TypeError as error:
        refusal = str(error)
    if refusal is None:
        assert edges.are_same(serde.deserialize(data), value)
    else:
        assert refusal.startswith(place)


@examples(500)
@given(edges.PLAIN)
@example({"wei": WEI, "b": -0.0, "c": None})
def test_what_json_has_comes_back_as_it_was(value: Any) -> None:
    data = serdes.json.serialize(value)
    assert edges.are_same(serdes.json.deserialize(data), value)
    assert edges.are_same(json.loads(data), value), "others read the same"


@examples(500)
@given(edges.nest(edges.SCALARS | edges.FOREIGN))
def test_any_value_comes_back_as_it_was_or_is_refused(value: Any) -> None:
    check_is_given_back(serdes.json, value, "value")


@examples(200)
@given(edges.FOREIGN)
def test_what_json_does_not_have_is_refused_with_its_place(value: Any) -> None:
    for held, place in (
        (value, "value"),
        ([0, value], "value[1]"),
        ({"orders": [{"a b": value}]}, "value.orders[0]['a b']"),
    ):
        with pytest.raises(TypeError) as refusal:
            serdes.json.serialize(held)
        assert str(refusal.value).startswith(f"{place}: ")


@examples(300)
@given(edges.PLAIN, st.sampled_from([None, 2]), st.booleans())
def test_what_others_write_is_read_as_they_wrote_it(
    value: Any, indent: int | None, is_ascii: bool
) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    assert edges.are_same(serdes.json.deserialize(data), value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"a": [{"at": datetime(2026, 1, 2, tzinfo=UTC)}]},
            r"^value\.a\[0\]\.at: JSON gives back no datetime",
        ),
        ({"total": float("inf")}, r"^value\.total: JSON has no inf"),
        ([None, float("nan")], r"^value\[1\]: JSON has no nan"),
        ({"a": {1: 2}}, r"^value\.a: keys of JSON are str, got int: 1"),
        ({"a": (1, 2)}, r"^value\.a: JSON gives back no tuple: \(1, 2\).*serdes\.json\(Type\)"),
        ({"a": "\ud800"}, r"^value\.a: UTF-8 has no lone surrogates"),
        ({"\ud800": 1}, "^value: UTF-8 has no lone surrogates"),
        ({"a": b"x"}, r"^value\.a: JSON gives back no bytes"),
        (Counter("a"), "^value: JSON gives back no Counter"),
    ],
)
def test_a_refusal_says_where_and_what(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        serdes.json.serialize(value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1e400", "infinity"),
        (b"NaN", "unexpected character"),
        (b'"\\ud800"', "surrogate"),
        (b'"\xff"', "UTF-8"),
        (b"[" * 1100 + b"]" * 1100, "depth"),
        (b"1" * 400, "infinity"),
    ],
)
def test_what_cannot_be_read_exactly_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        serdes.json.deserialize(data)


def test_a_large_integer_that_is_nested_deeply_is_read_exactly_or_refused() -> None:
    """Python's own parser, which has integers of any size, goes deeper from 3.12 on."""
    data = b"[" * 1000 + b"%d" % WEI + b"]" * 1000
    if sys.version_info < (3, 12):
        with pytest.raises(ValueError, match="more than 64 bits is nested too deeply"):
            serdes.json.deserialize(data)
        return
    value = serdes.json.deserialize(data)
    for _ in range(1000):
        [value] = value
    assert value == WEI


@pytest.mark.parametrize("depth", [250, 254, 255, 2000])
def test_deep_values_come_back_or_are_refused(depth: int) -> None:
    value: Any = {"x": WEI}
    for _ in range(depth - 1):
        value = [value]
    if depth <= 254:
        assert serdes.json.deserialize(serdes.json.serialize(value)) == value
    else:
        with pytest.raises(TypeError, match="nested more than 254 deep"):
            serdes.json.serialize(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(TypeError, match="holds itself"):
        serdes.json.serialize(value)
    with pytest.raises(TypeError, match=r"^value\.held.*holds itself"):
        serdes.json(Holder).serialize(Holder(value))


def test_ten_megabytes_come_back() -> None:
    value = {"text": "ä" * 5_000_000, "numbers": list(range(2**63 - 5, 2**63 + 5))}
    assert serdes.json.deserialize(serdes.json.serialize(value)) == value


def test_an_integer_that_could_not_be_read_is_refused() -> None:
    largest = 2**1023 - 1
    assert serdes.json.deserialize(serdes.json.serialize([largest, -largest])) == [
        largest,
        -largest,
    ]
    with pytest.raises(TypeError, match=r"^value\.a: orjson reads integers of 1023 bits, got 1024"):
        serdes.json.serialize({"a": 2**1023})


def test_nulls_stay_null() -> None:
    assert serdes.json.deserialize(b'{"total":null}') == {"total": None}


def test_lossy_writes_what_comes_back_as_another_type() -> None:
    lossy = serdes.json(lossy=True)
    value = {"at": datetime(2026, 1, 2, tzinfo=UTC), "pair": (1, 2), "rate": float("nan")}
    data = lossy.serialize(value)
    assert data == b'{"at":"2026-01-02T00:00:00+00:00","pair":[1,2],"rate":null}'
    assert lossy.deserialize(b"[%d]" % WEI) == [WEI]
    with pytest.raises(TypeError, match="one of the two"):
        serdes.json(Declared, lossy=True)


@dataclass
class Holder:
    held: list[Any]


class Grade(IntEnum):
    GOOD = 1
    BAD = 2


@dataclass
class Leaf:
    size: int
    _unit: str = "cm"
    weight: float | None = None


@dataclass
class Declared:
    at: datetime
    day: date
    hour: time
    number: UUID
    price: Decimal
    shade: edges.Shade
    grade: Grade
    leaves: list[Leaf]
    first: Leaf | None
    pair: tuple[Decimal, Leaf]
    several: tuple[int, ...]
    tags: set[str]
    days: frozenset[date]
    by_number: dict[int, Leaf]
    by_shade: dict[edges.Shade, Decimal]
    by_id: dict[UUID, datetime | None]
    anything: Any
    name: str
    cents: int
    rate: float
    is_paid: bool
    state: Literal["open", 7, None]
    either: int | str | None
    numbers: list[float]
    counts: dict[str, int]
    several_or_one: list[str] | str
    note: str = None  # type: ignore[assignment]  # as users write it
    sequence: Sequence[UUID] = field(default_factory=list)


LEAVES = st.builds(Leaf, edges.integers, edges.texts, st.none() | edges.floats)
DECLARED = st.builds(
    Declared,
    at=edges.datetimes,
    day=edges.dates,
    hour=edges.times,
    number=edges.uuids,
    price=edges.decimals,
    shade=st.sampled_from(edges.Shade),
    grade=st.sampled_from(Grade),
    leaves=st.lists(LEAVES, max_size=2),
    first=st.none() | LEAVES,
    pair=st.tuples(edges.decimals, LEAVES),
    several=st.lists(edges.integers).map(tuple),
    tags=st.sets(edges.texts),
    days=st.frozensets(edges.dates),
    by_number=st.dictionaries(edges.integers, LEAVES, max_size=2),
    by_shade=st.dictionaries(st.sampled_from(edges.Shade), edges.decimals),
    by_id=st.dictionaries(edges.uuids, st.none() | edges.datetimes, max_size=2),
    anything=edges.PLAIN,
    name=edges.texts,
    cents=edges.integers,
    rate=edges.floats | edges.integers,
    is_paid=st.booleans(),
    state=st.sampled_from(["open", 7, None]),
    either=edges.integers | edges.texts | st.none(),
    numbers=st.lists(edges.floats | edges.integers, max_size=3),
    counts=st.dictionaries(edges.texts, edges.integers, max_size=2),
    several_or_one=st.lists(edges.texts, max_size=2) | edges.texts,
    note=st.none() | edges.texts,
    sequence=st.lists(edges.uuids, max_size=2),
)


@examples(200)
@given(DECLARED)
def test_declared_types_come_back_as_they_were(value: Declared) -> None:
    serde = serdes.json(Declared)
    assert edges.are_same(serde.deserialize(serde.serialize(value)), value)


@examples(200)
@given(st.data(), st.sampled_from(sorted(Declared.__dataclass_fields__)))
def test_a_field_of_another_type_comes_back_or_is_refused(data: st.DataObject, name: str) -> None:
    serde, value = serdes.json(Declared), data.draw(DECLARED)
    setattr(value, name, data.draw(edges.SCALARS | edges.FOREIGN))
    check_is_given_back(serde, value, f"value.{name}")


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (datetime, datetime(2026, 1, 2, tzinfo=UTC)),
        (Decimal, Decimal("1.10")),
        (tuple[int, str], (1, "a")),
        (list[Leaf], [Leaf(1), Leaf(2)]),
        (dict[int, Decimal], {1: Decimal(2)}),
        (set[UUID], {UUID(int=1), UUID(int=2)}),
        (edges.Shade, edges.Shade.DARK),
    ],
)
def test_types_that_are_no_dataclasses_are_carried(type_: Any, value: Any) -> None:
    serde = serdes.json(type_)
    assert edges.are_same(serde.deserialize(serde.serialize(value)), value)


def test_serdes_are_named_by_their_types() -> None:
    assert serdes.json(Leaf).name == "json(Leaf)"
    assert serdes.json(list[Leaf]).name == "json(list[Leaf])"
    assert serdes.json(dict[UUID, datetime]).name == "json(dict[UUID, datetime])"
    assert serdes.json(lossy=True).name == "json(lossy=True)"


def test_equal_sets_have_equal_bytes() -> None:
    serde = serdes.json(set[int])
    assert serde.serialize({8, 0, 16}) == serde.serialize({16, 8, 0}) == b"[0,8,16]"


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        (Leaf, {"size": 1}, "^value: needs Leaf, got dict"),
        (list[Leaf], [Leaf(1), Leaf(Grade.GOOD)], r"^value\[1\]\.size: JSON gives back no Grade"),
        (list[Leaf], [Leaf(1, weight=float("nan"))], r"^value\[0\]\.weight: JSON has no nan"),
        (dict[int, Leaf], {"1": Leaf(1)}, r"^value\['1'\]: needs int, got str"),
        (dict[int, Leaf], {True: Leaf(1)}, r"^value\[True\]: needs int, got bool"),
        (tuple[int, int], (1, 2, 3), "^value: needs a tuple of 2"),
        (datetime, datetime(2026, 7, 1, tzinfo=ZoneInfo("Europe/Berlin")), "zone"),
        (datetime, datetime(2026, 10, 25, 2, 30, tzinfo=UTC, fold=1), "fold"),
        (datetime, datetime(2026, 1, 1, tzinfo=timezone(timedelta(microseconds=1))), "offset"),
        (dict[Decimal, int], {Decimal("NaN"): 1, Decimal("NaN"): 2}, "several of its keys are one"),
    ],
)
def test_a_value_that_its_type_does_not_carry_is_refused(
    type_: Any, value: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        serdes.json(type_).serialize(value)


def test_a_decimal_is_not_read_from_a_float() -> None:
    serde = serdes.json(Decimal)
    assert (serde.deserialize(b'"1.10"'), serde.deserialize(b"7")) == (Decimal("1.10"), Decimal(7))
    with pytest.raises(ValueError, match=r"needs Decimal, got float: 1\.1"):
        serde.deserialize(b"1.1")


class Mark(Enum):
    UNKNOWN = None
    GOOD = 1


def test_an_enumeration_with_none_is_refused_beside_none() -> None:
    assert serdes.json(Mark).deserialize(serdes.json(Mark).serialize(Mark.UNKNOWN)) is Mark.UNKNOWN
    with pytest.raises(TypeError, match=r"does not tell None from Mark\(None\)"):
        serdes.json(list[Mark | None])


def test_a_long_key_is_not_written_out_in_a_refusal() -> None:
    serde = serdes.json(dict[int, str])
    with pytest.raises(ValueError, match="needs int, got str: '9999") as caught:
        serde.deserialize(b'{"' + b"9" * 100_000 + b'": ""}')
    assert len(str(caught.value)) < 1_000


def test_two_texts_for_one_key_are_refused() -> None:
    with pytest.raises(ValueError, match="has a key twice"):
        serdes.json(dict[int, str]).deserialize(b'{"1": "a", "01": "b"}')
